// Shape rules of operators that move elements: Concat, Split, Slice, Transpose, Expand, Tile, Pad, Gather, depth and space.
#include <limits>

#include "graph/infer/infer.h"
#include "graph/evaluate/values.h"

namespace sparkle {

Status infer_rule(InferContext& c, ConcatOp& op) {
  if (c.inputs() < 1) return c.fail(Reason::bad_model, "it has no inputs");
  SPARKLE_CHECK(c.expect(c.inputs(), c.inputs()));
  Dims y = c.shape(0);
  SPARKLE_TRY(axis, c.axis(op.axis, y.size()));
  op.axis = axis;
  WideInt sum = 0;
  for (int i = 0; i < c.inputs(); ++i) {
    Dims part = c.shape(i);
    if (part.size() == y.size()) {
      sum += part[axis];
      part[axis] = y[axis];
    }
    if (part != y)
      return c.fail(Reason::bad_shape,
                    c.describe(i) + " does not line up with " + c.describe(0) + " outside of axis " + std::to_string(axis));
    if (c.type(i) != c.type(0))
      return c.fail(Reason::bad_model, "the types of '" + c.in(i).name + "' and '" + c.in(0).name + "' differ");
  }
  SPARKLE_TRY(size, c.size(sum, "its output"));
  y[axis] = size;
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, SplitOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  Dims x = c.shape(0);
  SPARKLE_TRY(axis, c.axis(op.axis, x.size()));
  op.axis = axis;
  const auto parts = static_cast<int64_t>(c.op().outputs.size());
  if (parts < 1) return c.fail(Reason::bad_model, "it has no outputs");
  std::vector<int64_t> sizes(op.sizes.begin(), op.sizes.end());
  if (c.given(1)) {
    SPARKLE_TRY(list, c.integers(1, "split"));
    sizes = list;
  }
  if (sizes.empty()) {  // equal parts, the last one smaller where it does not divide
    const int64_t chunk = x[axis] / parts + (x[axis] % parts != 0);
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::max<int64_t>(0, std::min(chunk, x[axis] - i * chunk)));
  }
  WideInt sum = 0;
  bool fits = static_cast<int64_t>(sizes.size()) == parts;
  for (int64_t size : sizes) sum += size, fits = fits && size >= 0;
  if (!fits || sum != x[axis])
    return c.fail(Reason::bad_shape, "its " + std::to_string(sizes.size()) + " sizes do not cut axis " + std::to_string(axis) +
                                         " of " + c.describe(0) + " into " + std::to_string(parts) + " parts");
  c.keep_inputs(1);
  // More parts than a list holds are always the equal ones or are read off the outputs' shapes.
  op.sizes = parts <= kMaxRank ? Dims(std::span<const int64_t>(sizes)) : Dims{};
  for (int i = 0; i < static_cast<int>(parts); ++i) {
    x[axis] = sizes[static_cast<size_t>(i)];
    SPARKLE_CHECK(c.set(i, c.type(0), x));
  }
  return ok();
}

Status infer_rule(InferContext& c, SliceOp& op) {
  SPARKLE_CHECK(c.expect(1, 5));
  const Dims& x = c.shape(0);
  const int rank = x.size();
  if (c.given(1)) {
    SPARKLE_TRY(starts, c.dims(1, "starts"));
    if (!c.given(2)) return c.fail(Reason::bad_model, "its ends are missing");
    SPARKLE_TRY(ends, c.dims(2, "ends"));
    op.starts = starts, op.ends = ends, op.axes = {}, op.steps = {};
    if (c.given(3)) {
      SPARKLE_TRY(axes, c.dims(3, "axes"));
      op.axes = axes;
    }
    if (c.given(4)) {
      SPARKLE_TRY(steps, c.dims(4, "steps"));
      op.steps = steps;
    }
  }
  const int count = op.starts.size();
  if (op.axes.empty())
    for (int i = 0; i < count; ++i) op.axes.push_back(i);
  if (op.steps.empty()) op.steps = Dims::filled(count, 1);
  if (op.ends.size() != count || op.axes.size() != count || op.steps.size() != count || count > rank)
    return c.fail(Reason::bad_model,
                  "its starts, ends, axes and steps differ in number or exceed the rank of " + c.describe(0));
  Dims y = x, starts = Dims::filled(rank, 0), ends = x, steps = Dims::filled(rank, 1);
  bool seen[kMaxRank] = {};
  for (int i = 0; i < count; ++i) {
    SPARKLE_TRY(axis, c.axis(op.axes[i], rank));
    if (seen[axis]) return c.fail(Reason::bad_model, "axis " + std::to_string(axis) + " is named twice");
    seen[axis] = true;
    const int64_t size = x[axis], step = op.steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return c.fail(Reason::bad_model, "a step of " + std::to_string(step) + " is not allowed");
    int64_t start = op.starts[i], end = op.ends[i];
    if (start < 0) start += size;
    if (end < 0) end += size;
    // A negative step walks from at most the last element to before the first one, at -1.
    start = step > 0 ? std::clamp<int64_t>(start, 0, size) : std::clamp<int64_t>(start, 0, std::max<int64_t>(size - 1, 0));
    end = step > 0 ? std::clamp<int64_t>(end, 0, size) : std::clamp<int64_t>(end, -1, std::max<int64_t>(size - 1, -1));
    const int64_t span = step > 0 ? end - start : start - end;
    const int64_t stride = step > 0 ? step : -step;
    y[axis] = span <= 0 || size == 0 ? 0 : span / stride + (span % stride != 0);
    starts[axis] = start;
    ends[axis] = end == -1 ? -(size + 1) : end;  // so that a second run reads it the same way
    steps[axis] = step;
  }
  op.starts = starts, op.ends = ends, op.steps = steps, op.axes = {};
  for (int i = 0; i < rank; ++i) op.axes.push_back(i);
  c.keep_inputs(1);
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, TransposeOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  const Dims& x = c.shape(0);
  const int rank = x.size();
  if (op.permutation.empty())
    for (int i = rank - 1; i >= 0; --i) op.permutation.push_back(i);
  Dims y;
  bool seen[kMaxRank] = {};
  for (int64_t& p : op.permutation) {
    if (p < 0) p += rank;
    if (op.permutation.size() != rank || p < 0 || p >= rank || seen[p])
      return c.fail(Reason::bad_model,
                    "perm " + op.permutation.to_string() + " is no permutation of the axes of " + c.describe(0));
    seen[p] = true;
    y.push_back(x[static_cast<int>(p)]);
  }
  if (op.permutation.size() != rank) return c.fail(Reason::bad_model, "perm is no permutation of the axes of " + c.describe(0));
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, ExpandOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  if (c.given(1)) {
    SPARKLE_TRY(target, c.dims(1, "shape"));
    op.target = target;
  }
  for (int64_t size : op.target)
    if (size < 0) return c.fail(Reason::bad_shape, "its shape " + op.target.to_string() + " holds a negative size");
  const auto y = broadcast(c.shape(0), op.target);
  if (!y) return c.fail(Reason::bad_shape, c.describe(0) + " does not broadcast to " + op.target.to_string());
  op.target = *y;
  c.keep_inputs(1);
  return c.set(0, c.type(0), *y);
}

Status infer_rule(InferContext& c, TileOp& op) {
  SPARKLE_CHECK(c.expect(1, 3));
  Dims y = c.shape(0);
  if (c.given(2)) {
    SPARKLE_TRY(tiles, c.integers(1, "tiles"));
    SPARKLE_TRY(axes, c.integers(2, "axis"));
    if (tiles.size() != 1 || axes.size() != 1)
      return c.fail(Reason::bad_shape, c.describe(1) + " and " + c.describe(2) + " should be one number each");
    SPARKLE_TRY(axis, c.axis(axes[0], y.size()));
    op.repeats = Dims::filled(y.size(), 1);
    op.repeats[axis] = tiles[0];
  } else if (c.given(1)) {
    SPARKLE_TRY(repeats, c.dims(1, "repeats"));
    op.repeats = repeats;
  }
  if (op.repeats.size() != y.size())
    return c.fail(Reason::bad_shape, "its repeats should have one entry per axis of " + c.describe(0));
  for (int i = 0; i < y.size(); ++i) {
    SPARKLE_TRY(size, c.size(WideInt{y[i]} * op.repeats[i], "its output"));
    if (op.repeats[i] < 0)
      return c.fail(Reason::bad_shape, "its repeats " + op.repeats.to_string() + " hold a negative number");
    y[i] = size;
  }
  c.keep_inputs(1);
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, PadOp& op) {
  SPARKLE_CHECK(c.expect(1, 4));
  const Dims& x = c.shape(0);
  const int rank = x.size();
  if (c.given(1)) {
    SPARKLE_TRY(pads, c.integers(1, "pads"));
    std::vector<int64_t> axes;
    if (c.given(3)) {
      SPARKLE_TRY(list, c.integers(3, "axes"));
      axes = list;
    } else {
      for (int i = 0; i < rank; ++i) axes.push_back(i);
    }
    if (pads.size() != 2 * axes.size() || axes.size() > static_cast<size_t>(rank))
      return c.fail(Reason::bad_model, "its " + std::to_string(pads.size()) + " pads do not match the " +
                                           std::to_string(axes.size()) + " axes to pad of " + c.describe(0));
    op.begin = op.end = Dims::filled(rank, 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      SPARKLE_TRY(axis, c.axis(axes[i], rank));
      op.begin[axis] = pads[i];
      op.end[axis] = pads[i + axes.size()];
    }
  }
  if (c.given(2)) {
    if (c.shape(2).product() != 1) return c.fail(Reason::bad_shape, "its value " + c.describe(2) + " should be a scalar");
    SPARKLE_TRY(value, c.numbers(2, "value"));
    op.value = value[0];
  }
  if (op.begin.size() != rank || op.end.size() != rank)
    return c.fail(Reason::bad_model, "its pads should have two entries per axis of " + c.describe(0));
  Dims y = x;
  for (int i = 0; i < rank; ++i) {
    SPARKLE_TRY(size, c.size(WideInt{x[i]} + op.begin[i] + op.end[i], "axis " + std::to_string(i) + " of its output"));
    y[i] = size;
    const bool grows = op.begin[i] > 0 || op.end[i] > 0;
    if (op.mode == PadMode::reflect && (op.begin[i] >= std::max<int64_t>(x[i], 1) || op.end[i] >= std::max<int64_t>(x[i], 1)))
      return c.fail(Reason::bad_shape,
                    "axis " + std::to_string(i) + " of " + c.describe(0) + " is too short to reflect that far");
    if (op.mode != PadMode::constant && grows && x[i] == 0)
      return c.fail(Reason::bad_shape,
                    "axis " + std::to_string(i) + " of " + c.describe(0) + " is empty and cannot be repeated");
  }
  op.given = true;
  c.keep_inputs(1);
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, GatherOp& op) {
  SPARKLE_CHECK(c.expect(2, 2));
  const Dims &x = c.shape(0), &indices = c.shape(1);
  SPARKLE_TRY(axis, c.axis(op.axis, x.size()));
  if (c.type(1) != DType::i64 && c.type(1) != DType::i32)
    return c.fail(Reason::bad_model, "its indices '" + c.in(1).name + "' should be integers");
  if (x.size() + indices.size() - 1 > kMaxRank)
    return c.fail(Reason::operator_not_served, "its output would have more than " + std::to_string(kMaxRank) + " axes");
  op.axis = axis;
  Dims y;
  for (int i = 0; i < axis; ++i) y.push_back(x[i]);
  for (int64_t size : indices) y.push_back(size);
  for (int i = axis + 1; i < x.size(); ++i) y.push_back(x[i]);
  return c.set(0, c.type(0), y);
}

namespace {

Status expect_block(InferContext& c, int64_t block) {
  SPARKLE_CHECK(c.expect(1, 1));
  SPARKLE_CHECK(c.expect_rank(0, 4));
  if (block < 1 || block > (1 << 20))
    return c.fail(Reason::bad_model, "blocksize " + std::to_string(block) + " is out of range");
  return ok();
}

}  // namespace

Status infer_rule(InferContext& c, DepthToSpaceOp& op) {
  SPARKLE_CHECK(expect_block(c, op.block));
  const Dims& x = c.shape(0);
  const int64_t square = op.block * op.block;
  if (x[1] % square != 0)
    return c.fail(Reason::bad_shape, "the channels of " + c.describe(0) + " do not divide by " + std::to_string(square));
  SPARKLE_TRY(h, c.size(WideInt{x[2]} * op.block, "its output"));
  SPARKLE_TRY(w, c.size(WideInt{x[3]} * op.block, "its output"));
  return c.set(0, c.type(0), {x[0], x[1] / square, h, w});
}

Status infer_rule(InferContext& c, SpaceToDepthOp& op) {
  SPARKLE_CHECK(expect_block(c, op.block));
  const Dims& x = c.shape(0);
  if (x[2] % op.block != 0 || x[3] % op.block != 0)
    return c.fail(Reason::bad_shape,
                  "the height and width of " + c.describe(0) + " do not divide by " + std::to_string(op.block));
  SPARKLE_TRY(channels, c.size(WideInt{x[1]} * op.block * op.block, "its output"));
  return c.set(0, c.type(0), {x[0], channels, x[2] / op.block, x[3] / op.block});
}

}  // namespace sparkle
