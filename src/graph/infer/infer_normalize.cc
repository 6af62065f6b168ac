// Shape rules of normalisations: the output is shaped like x, the parameters are checked.
#include "graph/infer/infer.h"

namespace sparkle {
namespace {

Status per_channel(InferContext& c, int first, int last, int64_t channels) {
  for (int i = first; i <= last; ++i)
    if (c.shape(i) != Dims{channels})
      return c.fail(Reason::bad_shape, "the parameter " + c.describe(i) + " should have one value for each of the " +
                                           std::to_string(channels) + " channels of " + c.describe(0));
  return ok();
}

Status batch_like(InferContext& c, int parameters) {
  SPARKLE_CHECK(c.expect(1 + parameters, 1 + parameters));
  if (c.shape(0).size() < 2) {
    // BatchNormalization alone takes a vector: one channel.
    if (parameters != 4 || c.shape(0).size() != 1)
      return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 2 or more");
    SPARKLE_CHECK(per_channel(c, 1, parameters, 1));
    return c.set(0, c.type(0), c.shape(0));
  }
  SPARKLE_CHECK(per_channel(c, 1, parameters, c.shape(0)[1]));
  return c.set(0, c.type(0), c.shape(0));
}

}  // namespace

Status infer_rule(InferContext& c, BatchNormalizationOp&) { return batch_like(c, 4); }
Status infer_rule(InferContext& c, InstanceNormalizationOp&) { return batch_like(c, 2); }

Status infer_rule(InferContext& c, LayerNormalizationOp& op) {
  SPARKLE_CHECK(c.expect(2, 3));
  const Dims& x = c.shape(0);
  SPARKLE_TRY(axis, c.axis(op.axis, x.size()));
  op.axis = axis;
  Dims normalized, statistics = x;
  for (int i = axis; i < x.size(); ++i) normalized.push_back(x[i]), statistics[i] = 1;
  for (int i = 1; i < c.inputs(); ++i) {
    if (!c.given(i)) continue;
    const auto both = broadcast(c.shape(i), x);
    if (!both || *both != x)
      return c.fail(Reason::bad_shape, "the parameter " + c.describe(i) + " does not broadcast to " + c.describe(0));
  }
  SPARKLE_CHECK(c.set(1, DType::f32, statistics));
  SPARKLE_CHECK(c.set(2, DType::f32, statistics));
  return c.set(0, c.type(0), x);
}

Status infer_rule(InferContext& c, GroupNormalizationOp& op) {
  SPARKLE_CHECK(c.expect(3, 3));
  const Dims& x = c.shape(0);
  if (x.size() < 2) return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 2 or more");
  if (op.groups < 1 || x[1] % op.groups != 0)
    return c.fail(Reason::bad_shape,
                  "the channels of " + c.describe(0) + " do not divide into " + std::to_string(op.groups) + " groups");
  for (int i = 1; i <= 2; ++i)
    if (c.shape(i) != Dims{x[1]} && c.shape(i) != Dims{op.groups})
      return c.fail(Reason::bad_shape,
                    "the parameter " + c.describe(i) + " should have one value for each channel of " + c.describe(0));
  return c.set(0, c.type(0), x);
}

Status infer_rule(InferContext& c, MeanVarianceNormalizationOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  const Dims& x = c.shape(0);
  bool seen[kMaxRank] = {};
  for (int64_t& entry : op.axes) {
    SPARKLE_TRY(axis, c.axis(entry, x.size()));
    if (seen[axis]) return c.fail(Reason::bad_model, "axis " + std::to_string(axis) + " is named twice");
    seen[axis] = true;
    entry = axis;
  }
  return c.set(0, c.type(0), x);
}

Status infer_rule(InferContext& c, LpNormalizationOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  SPARKLE_TRY(axis, c.axis(op.axis, c.shape(0).size()));
  op.axis = axis;
  return c.set(0, c.type(0), c.shape(0));
}

Status infer_rule(InferContext& c, LocalResponseOp& op) {
  SPARKLE_CHECK(c.expect(1, 1));
  if (c.shape(0).size() < 2) return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 2 or more");
  if (op.size < 1) return c.fail(Reason::bad_model, "size " + std::to_string(op.size) + " should be 1 or more");
  return c.set(0, c.type(0), c.shape(0));
}

}  // namespace sparkle
