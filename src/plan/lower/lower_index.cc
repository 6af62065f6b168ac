// Operators that look for, read or write at places: stages of the families gather, scatter, top_k, scan, triangle, non_max and
// pad, on row-major operands.
#include "families/gather/gather.h"
#include "families/non_max/non_max.h"
#include "families/pad/pad.h"
#include "families/scan/scan.h"
#include "families/scatter/scatter.h"
#include "families/top_k/top_k.h"
#include "families/triangle/triangle.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

int in_rows(Lowering& l, TensorId id) {
  const int v = l.value(id);
  return l.draft.in_order(v, order_row_major(l.draft.desc(v).shape.size()), "layout");
}

int make_rows(Lowering& l, TensorId id) {
  const GraphTensor& t = l.graph.tensor(id);
  return l.draft.make(t.name, t.dtype, t.shape, order_row_major(t.shape.size()));
}

// One stage from all inputs to the first output.
void lower_stage(Lowering& l, const Group& group, const Op& op, const StageParams& params) {
  std::vector<int> inputs;
  for (TensorId id : op.inputs) inputs.push_back(in_rows(l, id));
  const int out = make_rows(l, group.output);
  l.draft.step(op.name, l.nodes(group), params, inputs, {out});
  l.set(group.output, out);
}

void lower_arg(Lowering& l, const Group& group, const Op& op, const ArgOp& arg) {
  Draft& d = l.draft;
  const int x = in_rows(l, op.inputs[0]);
  const auto axis = static_cast<int>(arg.axis);
  Dims kept = d.desc(x).shape;
  kept[axis] = 1;
  const int out = d.make(l.result(group).name, DType::i64, kept, order_row_major(kept.size()));
  d.step(op.name, l.nodes(group), StageParams(TopKParams{axis, 1, !arg.smallest, arg.last, true}), {x}, {out});
  l.set(group.output, d.view(out, *reshape_view(d.desc(out), l.result(group).shape)));
}

void lower_top_k(Lowering& l, const Group& group, const Op& op, const TopKOp& top) {
  Draft& d = l.draft;
  const int x = in_rows(l, op.inputs[0]);
  Dims shape = d.desc(x).shape;
  shape[static_cast<int>(top.axis)] = top.k;
  std::vector<int> outputs;
  for (size_t i = 0; i < 2; ++i) {
    const TensorId id = i < op.outputs.size() ? op.outputs[i] : kAbsent;
    const std::string name = id == kAbsent ? op.name + "/unused" : l.graph.tensor(id).name;
    outputs.push_back(d.make(name, i == 0 ? d.desc(x).dtype : DType::i64, shape, order_row_major(shape.size())));
    if (id != kAbsent) l.set(id, outputs.back());
  }
  const TopKParams params{static_cast<int>(top.axis), top.k, top.largest, false, false};
  d.step(op.name, l.nodes(group), StageParams(params), {x}, outputs);
}

// Cut or padded half on each side: the odd element is cut from the end and padded there too.
void lower_center_crop_pad(Lowering& l, const Group& group, const Op& op) {
  Draft& d = l.draft;
  const int x = l.value(op.inputs[0]);
  const Dims from = d.desc(x).shape, to = l.result(group).shape;
  PadParams params;
  for (int i = 0; i < from.size(); ++i) {
    const int64_t more = to[i] - from[i];
    params.begin.push_back(more < 0 ? -(-more / 2) : more / 2);
    params.end.push_back(more - params.begin[i]);
  }
  const int out = d.make(l.result(group).name, l.result(group).dtype, to, d.desc(x).layout.order);
  d.step(op.name, l.nodes(group), StageParams(params), {x}, {out});
  l.set(group.output, out);
}

// The stage of an operator that is one stage on all of its inputs.
std::optional<StageParams> single_stage(const OpParams& params) {
  using Params = StageParams;
  if (const auto* p = std::get_if<CumSumOp>(&params))
    return Params(ScanParams{static_cast<int>(p->axis), p->exclusive, p->reverse});
  if (const auto* p = std::get_if<TriluOp>(&params)) return Params(TriangleParams{p->upper, p->diagonal});
  if (const auto* p = std::get_if<GatherElementsOp>(&params))
    return Params(GatherParams{static_cast<int>(p->axis), GatherForm::elements, 0});
  if (const auto* p = std::get_if<GatherNDOp>(&params))
    return Params(GatherParams{0, GatherForm::tuples, static_cast<int>(p->batch_axes)});
  if (const auto* p = std::get_if<ScatterElementsOp>(&params))
    return Params(ScatterParams{ScatterForm::elements, p->reduction, static_cast<int>(p->axis)});
  if (const auto* p = std::get_if<ScatterNDOp>(&params)) return Params(ScatterParams{ScatterForm::tuples, p->reduction, 0});
  if (const auto* p = std::get_if<OneHotOp>(&params))
    return Params(ScatterParams{ScatterForm::one_hot, ScatterReduction::none, static_cast<int>(p->axis)});
  if (const auto* p = std::get_if<NonMaxSuppressionOp>(&params))
    return Params(NonMaxParams{p->centers, p->most, p->overlap, p->has_threshold, p->threshold});
  return std::nullopt;
}

}  // namespace

bool is_index_operator(const Op& op) {
  return single_stage(op.params) || std::holds_alternative<ArgOp>(op.params) || std::holds_alternative<TopKOp>(op.params) ||
         std::holds_alternative<CenterCropPadOp>(op.params);
}

Result<bool> lower_index(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  if (const auto* arg = std::get_if<ArgOp>(&op.params)) {
    lower_arg(l, group, op, *arg);
  } else if (const auto* top = std::get_if<TopKOp>(&op.params)) {
    lower_top_k(l, group, op, *top);
  } else if (std::holds_alternative<CenterCropPadOp>(op.params)) {
    lower_center_crop_pad(l, group, op);
  } else if (const auto stage = single_stage(op.params)) {
    lower_stage(l, group, op, *stage);
  } else {
    return false;
  }
  return true;
}

}  // namespace sparkle
