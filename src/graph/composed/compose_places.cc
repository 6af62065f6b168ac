// Operators that move elements to computed places, losses that read them there, and products along an axis.
#include <algorithm>
#include <numeric>

#include "graph/composed/compose.h"
#include "graph/infer/infer.h"

namespace sparkle {
namespace {

using P = PointwiseOp;

std::vector<int64_t> counted(int64_t size) {
  std::vector<int64_t> list(static_cast<size_t>(size));
  std::iota(list.begin(), list.end(), 0);
  return list;
}
// All ones but for one axis.
Dims along(int rank, int axis, int64_t size) {
  Dims shape = Dims::filled(rank, 1);
  shape[axis] = size;
  return shape;
}

}  // namespace

Status compose(Composition& c, const ReverseSequenceOp& op) {
  const Dims x = c.shape(0);
  SPARKLE_TRY(time, c.axis(op.time_axis, x.size()));
  SPARKLE_TRY(batch, c.axis(op.batch_axis, x.size()));
  if (time == batch) return c.fail(Reason::bad_model, "its two axes are one");
  SPARKLE_CHECK(c.expect_shape(1, {x[batch]}));
  if (x.product() == 0) return c.give(0, c.in(0)), ok();
  const TensorId lengths = c.reshape(c.cast(c.in(1), DType::i64), along(x.size(), batch, x[batch]));
  const TensorId step = c.places(along(x.size(), time, x[time]), counted(x[time]));
  const TensorId last = c.pointwise(P::sub, {lengths, c.places(Dims::filled(x.size(), 1), {1})});
  const TensorId from =
      c.pointwise(P::select, {c.pointwise(P::less, {step, lengths}), c.pointwise(P::sub, {last, step}), step});
  c.give(0, c.add(GatherElementsOp{time}, {c.in(0), c.add(ExpandOp{x}, {from})}));
  return ok();
}

Status compose(Composition& c, const TensorScatterOp& op) {
  const Dims x = c.shape(0), u = c.shape(1);
  SPARKLE_TRY(axis, c.axis(op.axis, x.size()));
  if (axis == 0) return c.fail(Reason::bad_model, "its axis is that of the batch");
  Dims wanted = x;
  wanted[axis] = u.size() == x.size() ? u[axis] : -1;
  SPARKLE_CHECK(c.expect_shape(1, wanted));
  if (u[axis] > x[axis]) return c.wrong_shape(1, "no more entries along axis " + std::to_string(axis) + " than the cache");
  if (u.product() == 0) return c.give(0, c.in(0)), ok();
  TensorId to = c.places(along(x.size(), axis, u[axis]), counted(u[axis]));
  if (c.given(2)) {
    SPARKLE_CHECK(c.expect_shape(2, {x[0]}));
    to = c.pointwise(P::add, {to, c.reshape(c.cast(c.in(2), DType::i64), along(x.size(), 0, x[0]))});
    if (op.circular) to = c.pointwise(P::floor_mod, {to, c.places(Dims::filled(x.size(), 1), {x[axis]})});
  }
  c.give(0, c.add(ScatterElementsOp{axis, ScatterReduction::none}, {c.in(0), c.add(ExpandOp{u}, {to}), c.in(1)}));
  return ok();
}

// Each pass multiplies by what stands twice as far before: log2 of the length of them.
Status compose(Composition& c, const CumProdOp& op) {
  const Dims x = c.shape(0);
  SPARKLE_TRY(given, c.integer(1, "axis"));
  SPARKLE_TRY(axis, c.axis(given, x.size()));
  const int64_t size = x[axis];
  const auto shifted = [&](TensorId from, int64_t by) {  // ones come in
    PadOp pad{PadMode::constant, Dims::filled(x.size(), 0), Dims::filled(x.size(), 0), 1, true};
    (op.reverse ? pad.end : pad.begin)[axis] = by;
    return c.add(pad, {op.reverse ? c.slice(from, axis, by, size) : c.slice(from, axis, 0, size - by)});
  };
  TensorId y = c.in(0);
  if (op.exclusive && size > 0) y = shifted(y, 1);
  for (int64_t by = 1; by < size; by *= 2) y = c.pointwise(P::mul, {y, shifted(y, by)});
  c.give(0, y);
  return ok();
}

Status compose(Composition& c, const MaxUnpoolOp& op) {
  const Dims x = c.shape(0);
  const int spatial = x.size() - 2;
  if (spatial < 1 || op.kernel.size() != spatial || (!op.strides.empty() && op.strides.size() != spatial) ||
      (!op.pads.empty() && op.pads.size() != 2 * spatial))
    return c.fail(Reason::bad_model, "its kernel, strides and pads do not fit an input of rank " + std::to_string(x.size()));
  SPARKLE_CHECK(c.expect_shape(1, x));
  Dims y = x;
  constexpr int64_t kMost = int64_t{1} << 31;
  for (int i = 0; i < spatial; ++i) {
    WideInt size = WideInt{x[i + 2] - 1} * (op.strides.empty() ? 1 : op.strides[i]) + op.kernel[i];
    if (!op.pads.empty()) size -= WideInt{op.pads[i]} + op.pads[i + spatial];
    if (size < 1 || size > kMost) return c.fail(Reason::bad_shape, "its result would have a size below 1 or beyond 2^31");
    y[i + 2] = static_cast<int64_t>(size);
  }
  if (!checked_bytes(c.type(0), y)) return c.fail(Reason::size_overflow, "its result of " + y.to_string() + " is too large");
  const TensorId zeros = c.zeros(c.type(0), {y.product()});
  TensorId image = c.add(ScatterElementsOp{0, ScatterReduction::none},
                         {zeros, c.reshape(c.in(1), {x.product()}), c.reshape(c.in(0), {x.product()})});
  image = c.reshape(image, y);
  if (c.given(2)) {
    SPARKLE_TRY(shape, c.integers(2, "output shape"));
    PadOp pad{PadMode::constant, Dims::filled(y.size(), 0), Dims::filled(y.size(), 0), 0, true};
    if (static_cast<int>(shape.size()) != y.size()) return c.fail(Reason::bad_shape, "its output shape has another rank");
    for (int i = 0; i < y.size(); ++i) {
      pad.end[i] = shape[static_cast<size_t>(i)] - y[i];
      if (pad.end[i] < 0)
        return c.fail(Reason::bad_shape, "its output shape is smaller than " + y.to_string() + ", where its places lie");
    }
    image = c.add(pad, {image});
  }
  c.give(0, image);
  return ok();
}

// An ignored label counts for nothing, whatever class it names.
Status compose(Composition& c, const LossOp& op) {
  const Dims x = c.shape(0);
  if (x.size() < 2) return c.wrong_shape(0, "two axes at least");
  Dims labels = x;
  labels.erase(1);
  SPARKLE_CHECK(c.expect_shape(1, labels));
  if (c.given(2)) SPARKLE_CHECK(c.expect_shape(2, {x[1]}));
  const DType type = c.type(0);
  const TensorId scores = op.softmax ? c.add(SoftmaxOp{1, true, false}, {c.in(0)}) : c.in(0);
  c.give(1, scores);
  const Dims one = Dims::filled(labels.size(), 1);
  TensorId classes = c.cast(c.in(1), DType::i64), ignored = kAbsent;
  const TensorId zero = c.constant(type, one, {0});
  if (op.ignored) {
    ignored = c.pointwise(P::equal, {classes, c.places(one, {*op.ignored})});
    classes = c.pointwise(P::select, {ignored, c.places(one, {0}), classes});
  }
  Dims column = x;
  column[1] = 1;
  const TensorId found = c.add(GatherElementsOp{1}, {scores, c.reshape(classes, column)});
  TensorId loss = c.pointwise(P::neg, {c.reshape(found, labels)});
  if (op.ignored) loss = c.pointwise(P::select, {ignored, zero, loss});
  TensorId weights = kAbsent;
  if (c.given(2)) {
    weights = c.add(GatherOp{0}, {c.in(2), classes});
    if (op.ignored) weights = c.pointwise(P::select, {ignored, zero, weights});
    loss = c.pointwise(P::mul, {loss, weights});
  } else if (op.ignored) {
    weights = c.pointwise(P::select, {ignored, zero, c.constant(type, one, {1})});
  }
  if (op.reduction != LossOp::Reduction::none) {
    ReduceOp all;
    all.kind = op.reduction == LossOp::Reduction::mean && weights == kAbsent ? ReduceKind::mean : ReduceKind::sum;
    all.keep_dims = false;
    loss = c.add(all, {loss});
    if (op.reduction == LossOp::Reduction::mean && weights != kAbsent)
      loss = c.pointwise(P::div, {loss, c.add(all, {weights})});
  }
  c.give(0, loss);
  return ok();
}

}  // namespace sparkle
