// Shape rules of operators that look for, read or write at places: ArgMax, TopK, CumSum, Trilu, GatherElements, GatherND,
// Scatter*, OneHot, CenterCropPad, NonMaxSuppression.
#include "families/values/indices.h"
#include "families/scatter/scatter.h"
#include "graph/infer/infer.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

// The only element of a constant input.
Result<int64_t> one_integer(const InferContext& c, int i, const char* what) {
  SPARKLE_TRY(list, c.integers(i, what));
  if (list.size() != 1)
    return c.fail(Reason::bad_shape, "its " + std::string(what) + " " + c.describe(i) + " should be one number");
  return list[0];
}
Result<double> one_number(const InferContext& c, int i, const char* what) {
  SPARKLE_TRY(list, c.numbers(i, what));
  if (list.size() != 1)
    return c.fail(Reason::bad_shape, "its " + std::string(what) + " " + c.describe(i) + " should be one number");
  return list[0];
}

Status expect_indices(const InferContext& c, int i) {
  if (is_index_type(c.type(i))) return ok();
  return c.fail(Reason::bad_model, "its indices '" + c.in(i).name + "' should be int32 or int64");
}

// Where there is no element to choose from.
Status expect_elements(const InferContext& c, int axis, int64_t wanted) {
  if (c.shape(0)[axis] >= wanted) return ok();
  return c.fail(Reason::bad_shape,
                c.describe(0) + " has fewer than " + std::to_string(wanted) + " elements along axis " + std::to_string(axis));
}

// data, indices and updates of one type, and a reduction that the type has.
Status expect_scatter(const InferContext& c, ScatterReduction reduction) {
  SPARKLE_CHECK(c.expect(3, 3));
  SPARKLE_CHECK(expect_indices(c, 1));
  if (c.type(2) != c.type(0)) return c.fail(Reason::bad_model, "its updates and its data differ in type");
  if (c.shape(0).empty()) return c.fail(Reason::bad_shape, "its data '" + c.in(0).name + "' is a scalar");
  if (c.type(0) == DType::boolean && (reduction == ScatterReduction::add || reduction == ScatterReduction::mul))
    return c.fail(Reason::type_not_served, "truth values are neither added nor multiplied");
  return ok();
}

}  // namespace

Status infer_rule(InferContext& c, ArgOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  Dims y = c.shape(0);
  SPARKLE_TRY(axis, c.axis(op.axis, y.size()));
  op.axis = axis;
  if (y.product() != 0 || y[axis] == 0) SPARKLE_CHECK(expect_elements(c, axis, 1));
  y[axis] = 1;
  if (!op.keep_dims) y.erase(axis);
  return c.set(0, DType::i64, y);
}

Status infer_rule(InferContext& c, TopKOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  Dims y = c.shape(0);
  SPARKLE_TRY(axis, c.axis(op.axis, y.size()));
  op.axis = axis;
  if (c.given(1)) {
    SPARKLE_TRY(k, one_integer(c, 1, "k"));
    op.k = k;
  }
  if (op.k < 0) return c.fail(Reason::bad_model, "k is " + std::to_string(op.k));
  SPARKLE_CHECK(expect_elements(c, axis, op.k));
  y[axis] = op.k;
  c.keep_inputs(1);
  SPARKLE_CHECK(c.set(0, c.type(0), y));
  return c.set(1, DType::i64, y);
}

Status infer_rule(InferContext& c, CumSumOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  if (c.given(1)) {
    SPARKLE_TRY(given, one_integer(c, 1, "axis"));
    op.axis = given;
  }
  SPARKLE_TRY(axis, c.axis(op.axis, c.shape(0).size()));
  op.axis = axis;
  if (c.type(0) == DType::boolean) return c.fail(Reason::type_not_served, "truth values are not added");
  c.keep_inputs(1);
  return c.set(0, c.type(0), c.shape(0));
}

Status infer_rule(InferContext& c, TriluOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  if (c.shape(0).size() < 2) return c.fail(Reason::bad_shape, c.describe(0) + " is no matrix");
  if (c.given(1)) {
    SPARKLE_TRY(k, one_integer(c, 1, "k"));
    op.diagonal = k;
  }
  c.keep_inputs(1);
  return c.set(0, c.type(0), c.shape(0));
}

Status infer_rule(InferContext& c, GatherElementsOp& op) {
  SPARKLE_CHECK(c.expect(2, 2));
  SPARKLE_CHECK(expect_indices(c, 1));
  const Dims &x = c.shape(0), &indices = c.shape(1);
  SPARKLE_TRY(axis, c.axis(op.axis, x.size()));
  op.axis = axis;
  SPARKLE_CHECK(c.expect_rank(1, x.size()));
  for (int i = 0; i < x.size(); ++i)
    if (i != axis && indices[i] > x[i])
      return c.fail(Reason::bad_shape,
                    "its indices " + c.describe(1) + " are larger than " + c.describe(0) + " along axis " + std::to_string(i));
  return c.set(0, c.type(0), indices);
}

Status infer_rule(InferContext& c, GatherNDOp& op) {
  SPARKLE_CHECK(c.expect(2, 2));
  SPARKLE_CHECK(expect_indices(c, 1));
  const Dims &x = c.shape(0), &indices = c.shape(1);
  if (x.empty() || indices.empty()) return c.fail(Reason::bad_shape, "neither its data nor its indices may be scalars");
  const int outer = indices.size() - 1;
  if (op.batch_axes < 0 || op.batch_axes > outer || op.batch_axes >= x.size())
    return c.fail(Reason::bad_model,
                  "batch_dims " + std::to_string(op.batch_axes) + " does not fit " + c.describe(0) + " and " + c.describe(1));
  const int batch = static_cast<int>(op.batch_axes);
  for (int i = 0; i < batch; ++i)
    if (x[i] != indices[i])
      return c.fail(Reason::bad_shape, c.describe(0) + " and " + c.describe(1) + " differ in batch axis " + std::to_string(i));
  const int64_t length = indices[outer];
  if (length < 1 || length > x.size() - batch)
    return c.fail(Reason::bad_shape, "its indices " + c.describe(1) + " are tuples of " + std::to_string(length) + ", but " +
                                         c.describe(0) + " has " + std::to_string(x.size() - batch) + " axes to index");
  const int rest = x.size() - batch - static_cast<int>(length);
  if (outer + rest > kMaxRank)
    return c.fail(Reason::operator_not_served, "its output would have more than " + std::to_string(kMaxRank) + " axes");
  Dims y;
  for (int i = 0; i < outer; ++i) y.push_back(indices[i]);
  for (int i = x.size() - rest; i < x.size(); ++i) y.push_back(x[i]);
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, ScatterElementsOp& op) {
  SPARKLE_CHECK(expect_scatter(c, op.reduction));
  const Dims &x = c.shape(0), &indices = c.shape(1);
  SPARKLE_TRY(axis, c.axis(op.axis, x.size()));
  op.axis = axis;
  SPARKLE_CHECK(c.expect_rank(1, x.size()));
  if (!(c.shape(2) == indices))
    return c.fail(Reason::bad_shape, "its updates " + c.describe(2) + " and indices " + c.describe(1) + " differ in shape");
  for (int i = 0; i < x.size(); ++i)
    if (i != axis && indices[i] > x[i])
      return c.fail(Reason::bad_shape,
                    "its indices " + c.describe(1) + " are larger than " + c.describe(0) + " along axis " + std::to_string(i));
  return c.set(0, c.type(0), x);
}

Status infer_rule(InferContext& c, ScatterNDOp& op) {
  SPARKLE_CHECK(expect_scatter(c, op.reduction));
  const Dims &x = c.shape(0), &indices = c.shape(1);
  if (indices.empty()) return c.fail(Reason::bad_shape, "its indices '" + c.in(1).name + "' are a scalar");
  const int outer = indices.size() - 1;
  const int64_t length = indices[outer];
  if (length < 1 || length > x.size())
    return c.fail(Reason::bad_shape, "its indices " + c.describe(1) + " are tuples of " + std::to_string(length) + ", but " +
                                         c.describe(0) + " has " + std::to_string(x.size()) + " axes");
  Dims updates;
  for (int i = 0; i < outer; ++i) updates.push_back(indices[i]);
  bool fits = outer + x.size() - static_cast<int>(length) <= kMaxRank;
  for (int i = static_cast<int>(length); i < x.size(); ++i) updates.push_back(x[i]);
  fits = fits && c.shape(2) == updates;
  if (!fits) return c.fail(Reason::bad_shape, "its updates " + c.describe(2) + " should have the shape " + updates.to_string());
  return c.set(0, c.type(0), x);
}

Status infer_rule(InferContext& c, OneHotOp& op) {
  SPARKLE_CHECK(c.expect(2, 3));
  if (c.inputs() == 3) {
    if (!c.constant(1))
      return c.fail(Reason::operator_not_served,
                    "its depth '" + c.in(1).name + "' is computed at run time, but only a constant is supported");
    if (c.shape(1).product() != 1) return c.fail(Reason::bad_shape, "its depth " + c.describe(1) + " should be one number");
    op.depth = as_integers(*c.constant(1))[0];
    c.op().inputs.erase(c.op().inputs.begin() + 1);
  }
  if (op.depth < 0) return c.fail(Reason::bad_model, "its depth is " + std::to_string(op.depth));
  if (!(c.shape(1) == Dims{2})) return c.fail(Reason::bad_shape, "its values " + c.describe(1) + " should be two");
  if (c.type(0) == DType::boolean) return c.fail(Reason::bad_model, "its indices '" + c.in(0).name + "' should be numbers");
  Dims y = c.shape(0);
  if (y.size() == kMaxRank)
    return c.fail(Reason::operator_not_served, "its output would have more than " + std::to_string(kMaxRank) + " axes");
  SPARKLE_TRY(axis, c.axis(op.axis, y.size() + 1));
  op.axis = axis;
  y.insert(axis, op.depth);
  return c.set(0, c.type(1), y);
}

Status infer_rule(InferContext& c, CenterCropPadOp& op) {
  SPARKLE_CHECK(c.expect(1, 2));
  Dims y = c.shape(0);
  if (c.given(1)) {
    SPARKLE_TRY(sizes, c.dims(1, "shape"));
    Dims axes = op.axes;
    if (axes.empty())
      for (int i = 0; i < y.size(); ++i) axes.push_back(i);
    if (axes.size() != sizes.size())
      return c.fail(Reason::bad_model, "its shape has " + std::to_string(sizes.size()) + " entries for " +
                                           std::to_string(axes.size()) + " axes of " + c.describe(0));
    bool seen[kMaxRank] = {};
    for (int i = 0; i < axes.size(); ++i) {
      SPARKLE_TRY(axis, c.axis(axes[i], y.size()));
      if (seen[axis]) return c.fail(Reason::bad_model, "axis " + std::to_string(axis) + " is named twice");
      seen[axis] = true;
      SPARKLE_TRY(size, c.size(sizes[i], "axis " + std::to_string(axis) + " of its output"));
      y[axis] = size;
    }
    op.target = y, op.axes = {}, op.given = true;
  }
  if (!op.given || op.target.size() != y.size()) return c.fail(Reason::bad_model, "its shape is missing");
  c.keep_inputs(1);
  return c.set(0, c.type(0), op.target);
}

Status infer_rule(InferContext& c, EinsumOp&) {
  return c.fail(Reason::operator_not_served, "an equation is not evaluated on its own");
}

Status infer_rule(InferContext& c, NonMaxSuppressionOp& op) {
  SPARKLE_CHECK(c.expect(2, 5));
  SPARKLE_CHECK(c.expect_rank(0, 3));
  SPARKLE_CHECK(c.expect_rank(1, 3));
  const Dims &boxes = c.shape(0), &scores = c.shape(1);
  if (boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores[2])
    return c.fail(Reason::bad_shape, "its boxes " + c.describe(0) + " and scores " + c.describe(1) + " do not belong together");
  if (c.type(0) != DType::f32 || c.type(1) != DType::f32)
    return c.fail(Reason::type_not_served, "its boxes and scores should be float32");
  if (c.given(2)) {
    SPARKLE_TRY(most, one_integer(c, 2, "max_output_boxes_per_class"));
    op.most = most;
  }
  if (c.given(3)) {
    SPARKLE_TRY(overlap, one_number(c, 3, "iou_threshold"));
    if (!(overlap >= 0 && overlap <= 1))
      return c.fail(Reason::bad_model, "its iou_threshold " + std::to_string(overlap) + " is not between 0 and 1");
    op.overlap = overlap;
  }
  if (c.given(4)) {
    SPARKLE_TRY(threshold, one_number(c, 4, "score_threshold"));
    op.threshold = threshold, op.has_threshold = true;
  }
  op.most = std::clamp<int64_t>(op.most, 0, boxes[1]);
  SPARKLE_TRY(rows, c.size(WideInt{scores[0]} * scores[1] * op.most, "its output"));
  c.keep_inputs(2);
  SPARKLE_CHECK(c.set(0, DType::i64, {rows, 3}));
  c.graph().tensor(c.op().outputs[0]).open = true;
  return ok();
}

}  // namespace sparkle
