// Shape rules of arithmetic: matrix products, pointwise operators with broadcasting, casts, reductions, softmax.
#include <cmath>
#include <limits>
#include <utility>

#include "graph/infer/infer.h"
#include "graph/evaluate/values.h"

namespace sparkle {

bool gives_boolean(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::less:
    case PointwiseOp::less_equal:
    case PointwiseOp::greater:
    case PointwiseOp::greater_equal:
    case PointwiseOp::equal:
    case PointwiseOp::logical_and:
    case PointwiseOp::logical_or:
    case PointwiseOp::logical_xor:
    case PointwiseOp::logical_not:
    case PointwiseOp::is_nan: return true;
    default: return false;
  }
}

namespace {

bool unidirectional(const Dims& from, const Dims& to) {
  const auto both = broadcast(from, to);
  return both && *both == to;
}

// Clip: bounds that are constant inputs become a and b. bind() has turned bounds known at run time only into max and min.
Status resolve_clip(InferContext& c, PointwiseNode& op) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (c.inputs() == 1) {
    op.a = std::min(op.a, op.b);
    return ok();
  }
  double bounds[] = {-infinity, infinity};
  for (int i = 1; i < 3; ++i) {
    if (!c.given(i)) continue;
    if (c.shape(i).product() != 1) return c.fail(Reason::bad_shape, "its bound " + c.describe(i) + " should be a scalar");
    const HostTensor* value = c.constant(i);
    if (!value)
      return c.fail(Reason::operator_not_served,
                    "its bound '" + c.in(i).name + "' is computed at run time, but only a constant is supported");
    bounds[i - 1] = scalar(*value);
    if (std::isnan(bounds[i - 1]))
      return c.fail(Reason::operator_not_served, "its bound '" + c.in(i).name + "' is NaN, which only Max and Min support");
  }
  op.a = std::min(bounds[0], bounds[1]);  // where they cross, the upper bound wins
  op.b = bounds[1];
  c.keep_inputs(1);
  return ok();
}

// The rules of broadcasting before numpy's.
Status check_repeats(InferContext& c, PointwiseNode& op) {
  const Repeats repeats = std::exchange(op.repeats, Repeats::any);
  if (repeats == Repeats::any || arity_of(op.op) < 2) return ok();
  const Dims &a = c.shape(0), &b = c.shape(1);
  if (repeats == Repeats::none && a != b)
    return c.fail(Reason::bad_model, c.describe(0) + " and " + c.describe(1) +
                                         " should have one shape: the model's opset repeats an input only where the operator's "
                                         "attribute 'broadcast' says so");
  if (repeats == Repeats::second && !unidirectional(b, a))
    return c.fail(Reason::bad_model, c.describe(1) + " cannot be repeated to the shape of " + c.describe(0) +
                                         ", which is all that the model's opset allows");
  return ok();
}

}  // namespace

Status infer_rule(InferContext& c, PointwiseNode& op) {
  if (op.op == PointwiseOp::clip) {
    SPARKLE_CHECK(c.expect(1, 3));
    SPARKLE_CHECK(resolve_clip(c, op));
  }
  const int arity = arity_of(op.op);
  SPARKLE_CHECK(c.expect(arity, arity));
  if (arity == 0) return c.set(0, DType::f32, {});
  const int typed = op.op == PointwiseOp::select ? 1 : 0;
  SPARKLE_CHECK(check_repeats(c, op));
  Dims shape = c.shape(0);
  for (int i = 1; i < arity; ++i) {
    const auto both = broadcast(shape, c.shape(i));
    if (!both)
      return c.fail(Reason::bad_shape,
                    c.describe(i) + " does not broadcast with " + (i == 1 ? c.describe(0) : "the shape " + shape.to_string()));
    shape = *both;
    if (i > typed && c.type(i) != c.type(typed) && op.op != PointwiseOp::pow)
      return c.fail(Reason::bad_model, "the types of '" + c.in(typed).name + "' (" + std::string(name_of(c.type(typed))) +
                                           ") and '" + c.in(i).name + "' (" + std::string(name_of(c.type(i))) + ") differ");
  }
  return c.set(0, gives_boolean(op.op) ? DType::boolean : c.type(typed), shape);
}

Status infer_rule(InferContext& c, CastOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  if (c.given(1)) op.to = c.type(1);
  c.keep_inputs(1);
  return c.set(0, op.to, c.shape(0));
}

Result<Dims> infer_product(InferContext& c, const MatMulOp& op) {
  Dims a = c.shape(0), b = c.shape(1);
  const auto mismatch = [&] {
    return c.fail(Reason::bad_shape, c.describe(0) + " and " + c.describe(1) + " do not fit together in a matrix product");
  };
  Dims y;
  if (op.gemm) {
    SPARKLE_CHECK(c.expect_rank(0, 2));
    SPARKLE_CHECK(c.expect_rank(1, 2));
    if (op.transpose_a) std::swap(a[0], a[1]);
    if (op.transpose_b) std::swap(b[0], b[1]);
    if (a[1] != b[0]) return mismatch();
    y = {a[0], b[1]};
  } else {
    if (a.empty() || b.empty()) return mismatch();
    const bool vector_a = a.size() == 1, vector_b = b.size() == 1;
    if (vector_a) a.insert(0, 1);
    if (vector_b) b.push_back(1);
    const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
    if (b[b.size() - 2] != k) return mismatch();
    a.erase(a.size() - 1), a.erase(a.size() - 1);
    b.erase(b.size() - 1), b.erase(b.size() - 1);
    const auto batch = broadcast(a, b);
    if (!batch) return mismatch();
    y = *batch;
    if (!vector_a) y.push_back(m);
    if (!vector_b) y.push_back(n);
  }
  if (c.given(2) && !unidirectional(c.shape(2), y))
    return c.fail(Reason::bad_shape, c.describe(2) + " does not broadcast to the product's shape " + y.to_string());
  return y;
}

Status infer_rule(InferContext& c, MatMulOp& op) {
  SPARKLE_CHECK(c.expect(2, 3));
  if (c.type(1) != c.type(0))
    return c.fail(Reason::bad_model, "the types of " + c.describe(0) + " and " + c.describe(1) + " differ");
  SPARKLE_TRY(y, infer_product(c, op));
  if (std::exchange(op.whole_c, false) && c.given(2) && c.shape(2) != y)
    return c.fail(Reason::bad_model, c.describe(2) + " should have the product's shape " + y.to_string() +
                                         ": the model's opset repeats it only where the attribute 'broadcast' says so");
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, ReduceOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  const Dims& x = c.shape(0);
  const int rank = x.size();
  if (op.all_spatial) {
    if (rank < 3) return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 3 or more");
    op.axes = {};
    for (int i = 2; i < rank; ++i) op.axes.push_back(i);
  } else if (c.given(1)) {
    SPARKLE_TRY(axes, c.dims(1, "axes"));
    op.axes = axes;
  }
  c.keep_inputs(1);
  if (std::exchange(op.to_the_end, false)) {
    SPARKLE_TRY(first, c.axis(op.axes[0], rank));
    op.axes = {};
    for (int i = first; i < rank; ++i) op.axes.push_back(i);
  }
  bool reduced[kMaxRank] = {};
  const bool all = op.axes.empty() && !op.noop_if_no_axes;
  for (int i = 0; all && i < rank; ++i) reduced[i] = true;
  for (int64_t axis : op.axes) {
    SPARKLE_TRY(at, c.axis(axis, rank));
    reduced[at] = true;
  }
  op.axes = {};
  Dims y;
  for (int i = 0; i < rank; ++i) {
    if (!reduced[i]) {
      y.push_back(x[i]);
    } else {
      op.axes.push_back(i);
      if (op.keep_dims) y.push_back(1);
    }
  }
  if (op.axes.empty()) op.noop_if_no_axes = true;
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, SoftmaxOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  const int rank = c.shape(0).size();
  if (op.to_the_end && op.axis == rank && rank > 0) {  // a flattening after the last axis: each element alone
    op.axis = rank;
    return c.set(0, c.type(0), c.shape(0));
  }
  SPARKLE_TRY(axis, c.axis(op.axis, std::max(rank, 1)));
  op.axis = axis;
  return c.set(0, c.type(0), c.shape(0));
}

}  // namespace sparkle
