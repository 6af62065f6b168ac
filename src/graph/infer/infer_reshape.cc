// Shape rules of views (Reshape, Flatten, Squeeze, Unsqueeze: all become a Reshape to a full shape) and of operators that
// make shapes into values (Shape, Size, ConstantOfShape, Range).
#include <cmath>

#include "graph/infer/infer.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

Result<Dims> reshaped(InferContext& c, const ReshapeOp& op) {
  const Dims& x = c.shape(0);
  Dims y = op.target;
  int open = -1;
  WideInt known = 1;
  for (int i = 0; i < y.size(); ++i) {
    if (y[i] == 0 && !op.allow_zero) {
      if (i >= x.size())
        return c.fail(Reason::bad_shape,
                      "its shape copies axis " + std::to_string(i) + ", which " + c.describe(0) + " does not have");
      y[i] = x[i];
    }
    if (y[i] < -1 || (y[i] == -1 && open >= 0))
      return c.fail(Reason::bad_shape,
                    "its shape " + op.target.to_string() + " holds a negative size or leaves two sizes open");
    if (y[i] == -1) {
      open = i;
    } else {
      known *= y[i];
      if (known > (WideInt{1} << 62))
        return c.fail(Reason::size_overflow, "its shape " + op.target.to_string() + " exceeds what can be addressed");
    }
  }
  const int64_t total = x.product();
  const bool fits = open < 0     ? known == total
                    : known != 0 ? total % static_cast<int64_t>(known) == 0
                                 : total == 0 && !op.allow_zero;
  if (!fits) return c.fail(Reason::bad_shape, c.describe(0) + " cannot be reshaped to " + op.target.to_string());
  if (open >= 0) y[open] = known == 0 ? 0 : total / static_cast<int64_t>(known);
  return y;
}

Result<Dims> flattened(InferContext& c, const ReshapeOp& op) {
  const Dims& x = c.shape(0);
  int64_t axis = op.target.empty() ? 1 : op.target[0];
  if (axis < -x.size() || axis > x.size())
    return c.fail(Reason::bad_shape, "axis " + std::to_string(axis) + " does not exist in " + c.describe(0));
  if (axis < 0) axis += x.size();
  Dims y{1, 1};
  for (int i = 0; i < x.size(); ++i) y[i >= axis] *= x[i];
  return y;
}

Result<Dims> squeezed(InferContext& c, const ReshapeOp& op, bool all) {
  const Dims& x = c.shape(0);
  bool drop[kMaxRank] = {};
  for (int64_t entry : op.target) {
    SPARKLE_TRY(axis, c.axis(entry, x.size()));
    if (x[axis] != 1)
      return c.fail(Reason::bad_shape,
                    "axis " + std::to_string(axis) + " of " + c.describe(0) + " is not of size 1 and cannot be dropped");
    drop[axis] = true;
  }
  Dims y;
  for (int i = 0; i < x.size(); ++i)
    if (!(all ? x[i] == 1 : drop[i])) y.push_back(x[i]);
  return y;
}

Result<Dims> unsqueezed(InferContext& c, const ReshapeOp& op) {
  const Dims& x = c.shape(0);
  const int rank = x.size() + op.target.size();
  if (rank > kMaxRank)
    return c.fail(Reason::operator_not_served, "its output would have more than " + std::to_string(kMaxRank) + " axes");
  bool fresh[kMaxRank] = {};
  for (int64_t entry : op.target) {
    SPARKLE_TRY(axis, c.axis(entry, rank));
    if (fresh[axis]) return c.fail(Reason::bad_model, "axis " + std::to_string(axis) + " is named twice");
    fresh[axis] = true;
  }
  Dims y;
  for (int i = 0, from = 0; i < rank; ++i) y.push_back(fresh[i] ? 1 : x[from++]);
  return y;
}

}  // namespace

Status infer_rule(InferContext& c, ReshapeOp& op) {
  using Form = ReshapeOp::Form;
  SPARKLE_CHECK(c.expect(1, 2));
  if (c.given(1)) {
    SPARKLE_TRY(target, c.dims(1, op.form == Form::reshape ? "shape" : "axes"));
    op.target = target;
    op.target_given = true;
  }
  if (op.form == Form::reshape && !op.target_given && op.target.empty())
    return c.fail(Reason::bad_model, "its shape is missing");
  const bool all = op.form == Form::squeeze && op.target.empty() && !op.target_given;
  SPARKLE_TRY(y, op.form == Form::reshape   ? reshaped(c, op)
                 : op.form == Form::flatten ? flattened(c, op)
                 : op.form == Form::squeeze ? squeezed(c, op, all)
                                            : unsqueezed(c, op));
  op = {Form::reshape, y, true, true};
  c.keep_inputs(1);
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, ShapeOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  const int64_t rank = c.shape(0).size();
  const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t count = place(op.end.value_or(rank)) - place(op.start);
  return c.set(0, DType::i64, {std::max<int64_t>(count, 0)});
}

Status infer_rule(InferContext& c, SizeOp&) {
  SPARKLE_CHECK(c.expect(1, 1));
  return c.set(0, DType::i64, {});
}

Status infer_rule(InferContext& c, ConstantOfShapeOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  SPARKLE_TRY(shape, c.dims(0, "shape"));
  for (int64_t size : shape)
    if (size < 0) return c.fail(Reason::bad_shape, "its shape " + shape.to_string() + " holds a negative size");
  return c.set(0, op.dtype, shape);
}

Status infer_rule(InferContext& c, RangeOp&) {
  SPARKLE_CHECK(c.expect(3, 3));
  double values[3];
  for (int i = 0; i < 3; ++i) {
    SPARKLE_TRY(number, c.numbers(i, i == 0 ? "start" : i == 1 ? "limit" : "delta"));
    if (number.size() != 1) return c.fail(Reason::bad_shape, c.describe(i) + " should be a scalar");
    values[i] = number[0];
  }
  const double count = std::ceil((values[1] - values[0]) / values[2]);
  if (!(std::abs(count) < 1e15)) return c.fail(Reason::bad_shape, "its start, limit and delta make no finite range");
  return c.set(0, c.type(0), {std::max<int64_t>(static_cast<int64_t>(count), 0)});
}

}  // namespace sparkle
