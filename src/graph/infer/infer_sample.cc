// Shape rules of GridSample and DeformConv.
#include "graph/infer/infer.h"

namespace sparkle {
namespace {

Status fill(InferContext& c, Dims& list, int64_t missing, int64_t least, const char* what) {
  if (list.empty()) list = {missing, missing};
  if (list.size() != 2)
    return c.fail(Reason::bad_model, std::string(what) + " has " + std::to_string(list.size()) + " entries for 2 spatial axes");
  for (int64_t v : list)
    if (v < least || v > (int64_t{1} << 31))
      return c.fail(Reason::bad_model, std::string(what) + " holds " + std::to_string(v) + ", which is out of range");
  return ok();
}

}  // namespace

Status infer_rule(InferContext& c, GridSampleOp&) {
  SPARKLE_CHECK(c.expect(2, 2));
  const Dims &x = c.shape(0), &grid = c.shape(1);
  const int spatial = x.size() - 2;
  if (spatial < 1) return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 3 or more");
  SPARKLE_CHECK(c.expect_rank(1, x.size()));
  if (grid[0] != x[0] || grid.back() != spatial)
    return c.fail(Reason::bad_shape, "the grid " + c.describe(1) + " does not fit " + c.describe(0));
  Dims y{x[0], x[1]};
  for (int i = 1; i <= spatial; ++i) y.push_back(grid[i]);
  for (int i = 2; i < x.size(); ++i)
    if (x[i] == 0 && y.product() != 0) return c.fail(Reason::bad_shape, c.describe(0) + " is empty and cannot be sampled");
  return c.set(0, c.type(0), y);
}

Status infer_rule(InferContext& c, DeformConvOp& op) {
  SPARKLE_CHECK(c.expect(3, 5));
  const Dims &x = c.shape(0), &w = c.shape(1);
  if (x.size() != 4)
    return x.size() < 3 ? c.fail(Reason::bad_shape, c.describe(0) + " should have rank 4")
                        : c.fail(Reason::operator_not_served,
                                 std::to_string(x.size() - 2) + " spatial dimensions are not supported, only 2");
  SPARKLE_CHECK(c.expect_rank(1, 4));
  SPARKLE_CHECK(c.expect_rank(2, 4));
  if (op.groups < 1 || op.groups > w[0] || w[0] % op.groups != 0 || x[1] % op.groups != 0 || x[1] / op.groups != w[1])
    return c.fail(Reason::bad_shape, "the channels of " + c.describe(0) + " do not match the weights " + c.describe(1) +
                                         " in " + std::to_string(op.groups) + " group(s)");
  if (op.offset_groups < 1 || op.offset_groups > std::max<int64_t>(x[1], 1) || x[1] % op.offset_groups != 0)
    return c.fail(Reason::bad_shape, "the channels of " + c.describe(0) + " do not divide into " +
                                         std::to_string(op.offset_groups) + " offset groups");
  const Dims kernel{w[2], w[3]};
  if (!op.kernel.empty() && op.kernel != kernel)
    return c.fail(Reason::bad_model, "kernel_shape " + op.kernel.to_string() + " contradicts the weights " + c.describe(1));
  op.kernel = kernel;
  SPARKLE_CHECK(fill(c, op.kernel, 1, 1, "kernel_shape"));
  SPARKLE_CHECK(fill(c, op.strides, 1, 1, "strides"));
  SPARKLE_CHECK(fill(c, op.dilations, 1, 1, "dilations"));
  SPARKLE_CHECK(fill(c, op.pads_begin, 0, 0, "pads"));
  SPARKLE_CHECK(fill(c, op.pads_end, 0, 0, "pads"));
  Dims y{x[0], w[0]};
  for (int i = 0; i < 2; ++i) {
    const WideInt filter = WideInt{op.kernel[i] - 1} * op.dilations[i] + 1;
    const WideInt room = WideInt{x[2 + i]} + op.pads_begin[i] + op.pads_end[i] - filter;
    if (room < 0)
      return c.fail(Reason::bad_shape,
                    "the window of " + op.kernel.to_string() + " does not fit into " + c.describe(0) + " with its padding");
    SPARKLE_TRY(out, c.size(room / op.strides[i] + 1, "its output"));
    y.push_back(out);
  }
  const auto expect = [&](int i, const Dims& shape, const char* what) -> Status {
    if (!c.given(i) || c.shape(i) == shape) return ok();
    return c.fail(Reason::bad_shape,
                  "its " + std::string(what) + " " + c.describe(i) + " should have the shape " + shape.to_string());
  };
  SPARKLE_TRY(taps, c.size(WideInt{op.offset_groups} * w[2] * w[3], "the number of taps"));
  SPARKLE_CHECK(expect(2, {x[0], 2 * taps, y[2], y[3]}, "offset"));
  SPARKLE_CHECK(expect(3, {w[0]}, "bias"));
  SPARKLE_CHECK(expect(4, {x[0], taps, y[2], y[3]}, "mask"));
  return c.set(0, c.type(0), y);
}

}  // namespace sparkle
