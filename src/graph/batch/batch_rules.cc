#include "graph/batch/batch_rules.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/system/out_of_memory.h"

namespace sparkle {
namespace {

Error mixes(const std::string& what) { return {Reason::bad_usage, what}; }
Status holds(bool good, const char* otherwise) { return good ? ok() : Status(mixes(otherwise)); }

constexpr const char* kFirstAxis = "works along the first axis, which is that of the items";

// Beside the listed inputs nothing may come from an item.
Status only(const BatchedOp& o, std::initializer_list<size_t> these) {
  for (const size_t i : these)
    SPARKLE_CHECK(holds(!o.given(i) || o.in(i), "reads one value for all items where each has its own"));
  for (size_t i = 0; i < o.op.inputs.size(); ++i)
    if (std::find(these.begin(), these.end(), i) == these.end())
      SPARKLE_CHECK(holds(!o.in(i), "takes weights or attributes from an item"));
  return ok();
}

// An operand that is repeated to the result's shape: the items' axis meets the result's first, or an axis of 1.
Status aligned(const BatchedOp& o, size_t i) {
  if (!o.given(i)) return ok();
  if (o.in(i)) return holds(o.rank(i) == o.result().size(), "moves the axis of the items behind others");
  return holds(o.rank(i) < o.result().size() || o.shape(i).empty() || o.shape(i)[0] == 1,
               "repeats items along an axis of its other operand");
}

Status axis_is_not_first(int64_t axis, int rank) { return holds((axis < 0 ? axis + rank : axis) != 0, kFirstAxis); }

// A constant for one item, once for each.
Status repeat(BatchedOp& o, size_t i) {
  const GraphTensor& t = o.graph.tensor(o.op.inputs[i]);
  if (!t.constant || t.shape.empty() || t.shape[0] != 1) return mixes("reads one value for all items where each has its own");
  Dims shape = t.shape;
  shape[0] = o.rows;
  SPARKLE_TRY(all, allocate_tensor(t.dtype, shape, "A constant for each item"));
  const auto bytes = static_cast<size_t>(t.constant->size_bytes());
  for (int64_t r = 0; r < o.rows; ++r)
    std::memcpy(all.bytes.get() + static_cast<size_t>(r) * bytes, t.constant->bytes.get(), bytes);
  const std::string name = t.name + "_of_each_item";
  const TensorId id = o.graph.add_constant(name, std::move(all));
  o.graph.tensor(id).known = o.graph.tensor(id).rank_known = true;
  o.op.inputs[i] = id;
  return ok();
}

Status rule(BatchedOp& o, ConvOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, BatchNormalizationOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, InstanceNormalizationOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, GroupNormalizationOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, LocalResponseOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, DepthToSpaceOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, SpaceToDepthOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, CastOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, QuantizedConvOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, QuantizedAverageOp&) { return only(o, {0}); }
Status rule(BatchedOp& o, DeformConvOp&) { return only(o, {0, 2, 4}); }
Status rule(BatchedOp& o, PoolOp&) {
  SPARKLE_CHECK(holds(o.op.outputs.size() < 2 || o.op.outputs[1] == kAbsent, "counts places over all items"));
  return only(o, {0});
}

Status product(BatchedOp& o, const MatMulOp& m) {
  const bool a = o.in(0), b = o.in(1);
  const int rank = o.result().size();
  constexpr const char* kMultiplies = "multiplies items with one another";
  for (size_t i = 2; i < o.op.inputs.size(); ++i)
    if (o.in(i) || (o.given(i) && o.rank(i) == rank)) SPARKLE_CHECK(aligned(o, i));
  if (m.gemm) return holds(a && !b && !m.transpose_a, kMultiplies);
  if (a && b) return holds(o.rank(0) == rank && o.rank(1) == rank && rank >= 3, kMultiplies);
  const size_t items = a ? 0 : 1, other = a ? 1 : 0;
  const bool alone = o.rank(items) == rank && rank >= (a ? 2 : 3);
  return holds(alone && (o.rank(other) < 3 || o.rank(other) < rank || o.shape(other)[0] == 1), kMultiplies);
}
Status rule(BatchedOp& o, MatMulOp& m) { return product(o, m); }
Status rule(BatchedOp& o, QuantizedMatMulOp& m) {
  SPARKLE_CHECK(only(o, {0}));
  return product(o, m.matmul);
}

Status rule(BatchedOp& o, PointwiseNode&) {
  for (size_t i = 0; i < o.op.inputs.size(); ++i) SPARKLE_CHECK(aligned(o, i));
  return ok();
}
Status rule(BatchedOp& o, QuantizedAddOp&) {
  for (const size_t i : {size_t{0}, size_t{3}}) SPARKLE_CHECK(aligned(o, i));
  for (const size_t i : {1, 2, 4, 5, 6, 7}) SPARKLE_CHECK(holds(!o.in(i), "takes its scales from an item"));
  return ok();
}

Status along(BatchedOp& o, int64_t axis) {
  SPARKLE_CHECK(only(o, {0}));
  return axis_is_not_first(axis, o.rank(0));
}
Status rule(BatchedOp& o, LayerNormalizationOp& p) { return along(o, p.axis); }
Status rule(BatchedOp& o, LpNormalizationOp& p) { return along(o, p.axis); }
Status rule(BatchedOp& o, SoftmaxOp& p) { return along(o, p.axis); }
Status rule(BatchedOp& o, ArgOp& p) { return along(o, p.axis); }
Status rule(BatchedOp& o, TopKOp& p) { return along(o, p.axis); }
Status rule(BatchedOp& o, CumSumOp& p) { return along(o, p.axis); }
Status rule(BatchedOp& o, SplitOp& p) { return along(o, p.axis); }
Status over(BatchedOp& o, const Dims& axes) {
  SPARKLE_CHECK(only(o, {0}));
  return holds(std::find(axes.begin(), axes.end(), 0) == axes.end(), kFirstAxis);
}
Status rule(BatchedOp& o, MeanVarianceNormalizationOp& p) { return over(o, p.axes); }
Status rule(BatchedOp& o, ReduceOp& p) { return over(o, p.axes); }

Status rule(BatchedOp& o, ConcatOp& p) {
  SPARKLE_CHECK(axis_is_not_first(p.axis, o.result().size()));
  for (size_t i = 0; i < o.op.inputs.size(); ++i)
    if (!o.in(i)) SPARKLE_CHECK(repeat(o, i));
  return ok();
}
Status rule(BatchedOp& o, GridSampleOp&) {
  for (const size_t i : {0, 1})
    if (!o.in(i)) SPARKLE_CHECK(repeat(o, i));
  return ok();
}
Status rule(BatchedOp& o, GatherOp& p) {
  SPARKLE_CHECK(holds(o.in(0) != o.in(1), "looks up places of one item in another"));
  const int64_t axis = p.axis < 0 ? p.axis + o.rank(0) : p.axis;
  return holds(o.in(0) ? axis != 0 : axis == 0, kFirstAxis);
}
Status rule(BatchedOp& o, GatherElementsOp& p) {
  SPARKLE_CHECK(only(o, {0, 1}));
  return axis_is_not_first(p.axis, o.rank(0));
}
Status rule(BatchedOp& o, GatherNDOp& p) {
  SPARKLE_CHECK(only(o, {0, 1}));
  return holds(p.batch_axes > 0, kFirstAxis);
}
Status rule(BatchedOp& o, ScatterElementsOp& p) {
  SPARKLE_CHECK(only(o, {0, 1, 2}));
  return axis_is_not_first(p.axis, o.rank(0));
}
Status rule(BatchedOp& o, TriluOp&) {
  SPARKLE_CHECK(only(o, {0}));
  return holds(o.rank(0) >= 3, kFirstAxis);
}

Status rule(BatchedOp& o, ReshapeOp& p) {
  SPARKLE_CHECK(only(o, {0}));
  SPARKLE_CHECK(holds(!p.target.empty() && p.target[0] == 1, "puts the axis of the items together with others"));
  p.target[0] = o.rows;
  return ok();
}
Status rule(BatchedOp& o, TransposeOp& p) {
  SPARKLE_CHECK(only(o, {0}));
  return holds(!p.permutation.empty() && p.permutation[0] == 0, "moves the axis of the items behind others");
}
Status rule(BatchedOp& o, ExpandOp& p) {
  SPARKLE_CHECK(only(o, {0}));
  SPARKLE_CHECK(holds(o.rank(0) == p.target.size() && p.target[0] == 1, "moves the axis of the items behind others"));
  p.target[0] = o.rows;
  return ok();
}
Status rule(BatchedOp& o, SliceOp& p) {
  SPARKLE_CHECK(only(o, {0}));
  SPARKLE_CHECK(holds(p.starts[0] == 0 && p.steps[0] == 1 && o.result()[0] == 1, kFirstAxis));
  p.ends[0] = o.rows;
  return ok();
}
Status rule(BatchedOp& o, TileOp& p) {
  SPARKLE_CHECK(only(o, {0}));
  return holds(p.repeats[0] == 1, kFirstAxis);
}
Status rule(BatchedOp& o, PadOp& p) {
  SPARKLE_CHECK(only(o, {0}));
  return holds(p.begin[0] == 0 && p.end[0] == 0, kFirstAxis);
}
Status rule(BatchedOp& o, ResizeOp& p) {
  SPARKLE_CHECK(only(o, {0}));
  const bool whole = p.params.roi_begin.empty() || (p.params.roi_begin[0] == 0 && p.params.roi_end[0] == 1);
  return holds(!p.params.scales.empty() && p.params.scales[0] == 1 && whole, kFirstAxis);
}

// A scale for all, or one for each place along another axis.
Status scaled_apart(const BatchedOp& o, int64_t axis, int64_t block) {
  SPARKLE_CHECK(only(o, {0}));
  if (o.shape(1).product() == 1 && block == 0) return ok();
  SPARKLE_CHECK(holds(block == 0, "has a scale for each block of an item"));
  return axis_is_not_first(axis, o.rank(0));
}
Status rule(BatchedOp& o, QuantizeOp& p) { return scaled_apart(o, p.axis, p.block); }
Status rule(BatchedOp& o, DequantizeOp& p) { return scaled_apart(o, p.axis, p.block); }

Status rule(BatchedOp& o, AttentionOp&) {
  for (const size_t i : {0, 1, 2}) SPARKLE_CHECK(holds(o.in(i), "reads one value for all items where each has its own"));
  if (o.given(3)) SPARKLE_CHECK(holds(!o.in(3) && o.rank(3) <= 2, "has a mask with an axis that may be that of the items"));
  for (size_t i = 4; i < o.op.inputs.size(); ++i) SPARKLE_CHECK(holds(!o.given(i), "keeps keys and values of runs before"));
  for (size_t i = 1; i < o.op.outputs.size(); ++i)
    SPARKLE_CHECK(holds(o.op.outputs[i] == kAbsent, "keeps keys and values for runs behind"));
  return ok();
}

// Of all others it is not known: they count over the whole tensor (DynamicQuantizeLinear, NonMaxSuppression), or nobody has
// looked.
template <class T>
Status rule(BatchedOp&, T&) {
  return mixes("is not known to keep items apart");
}

}  // namespace

Result<Done> keep_items_apart(BatchedOp& o) {
  return std::visit([&](auto& params) { return rule(o, params); }, o.op.params);
}

}  // namespace sparkle
