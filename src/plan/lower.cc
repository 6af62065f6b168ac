#include "plan/lower.h"

#include "plan/view.h"

namespace sparkle {

int Lowering::value(TensorId id) {
  int& v = value_of[static_cast<size_t>(id)];
  if (v < 0) {
    const GraphTensor& t = graph.tensor(id);
    if (t.constant) v = draft.constant(t.name, *t.constant);
  }
  return v;
}

std::vector<std::string> Lowering::nodes(const Group& group) const {
  std::vector<std::string> names;
  for (int i : group.ops) names.push_back(graph.ops[static_cast<size_t>(i)].name);
  return names;
}

namespace {

bool is_quantized(const Op& op) {
  return std::holds_alternative<QuantizeOp>(op.params) || std::holds_alternative<DequantizeOp>(op.params) ||
         std::holds_alternative<DynamicQuantizeOp>(op.params) || std::holds_alternative<QuantizedConvOp>(op.params) ||
         std::holds_alternative<QuantizedMatMulOp>(op.params) || std::holds_alternative<QuantizedAddOp>(op.params) ||
         std::holds_alternative<QuantizedAverageOp>(op.params);
}

// Moves of whole elements serve any type; arithmetic is fp32 (with truth values beside it) so far.
Status check_types(const Graph& graph, const Op& op) {
  const bool moves = std::holds_alternative<ReshapeOp>(op.params) || std::holds_alternative<TransposeOp>(op.params) ||
                     std::holds_alternative<SliceOp>(op.params) || std::holds_alternative<SplitOp>(op.params) ||
                     std::holds_alternative<ConcatOp>(op.params) || std::holds_alternative<ExpandOp>(op.params) ||
                     std::holds_alternative<TileOp>(op.params) || std::holds_alternative<DepthToSpaceOp>(op.params) ||
                     std::holds_alternative<SpaceToDepthOp>(op.params) || std::holds_alternative<GatherOp>(op.params) ||
                     std::holds_alternative<PadOp>(op.params);
  if (is_quantized(op)) return ok();  // inference has checked their types
  const bool gathers = std::holds_alternative<GatherOp>(op.params);
  const bool elementwise = std::holds_alternative<PointwiseNode>(op.params) || std::holds_alternative<CastOp>(op.params);
  const auto check = [&](TensorId id, size_t position) -> Status {
    if (id == kAbsent) return ok();
    const GraphTensor& t = graph.tensor(id);
    bool served = moves || t.dtype == DType::f32 || (elementwise && t.dtype == DType::boolean);
    if (gathers && position == 1) served = t.dtype == DType::i32 || t.dtype == DType::i64;
    if (std::holds_alternative<PoolOp>(op.params) && position == 100 + 1) served = t.dtype == DType::i64;
    if (served) return ok();
    return Error{Reason::type_not_served, "Node '" + op.name + "' (" + op.type + "): tensor '" + t.name + "' has type " +
                                              std::string(name_of(t.dtype)) + ", which this operator does not serve yet."};
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) SPARKLE_CHECK(check(op.inputs[i], i));
  for (size_t i = 0; i < op.outputs.size(); ++i) SPARKLE_CHECK(check(op.outputs[i], 100 + i));
  return ok();
}

Status lower_group(Lowering& l, const Group& group) {
  for (int i : group.ops) SPARKLE_CHECK(check_types(l.graph, l.graph.ops[static_cast<size_t>(i)]));
  if (group.anchor >= 0) return lower_anchor(l, group);
  if (!group.program.program.empty()) return lower_pointwise(l, group);
  for (auto* theme : {lower_view, lower_movement, lower_window, lower_normal, lower_quantize}) {
    SPARKLE_TRY(served, theme(l, group));
    if (served) return ok();
  }
  const Op& op = l.op(group);
  return Error{Reason::operator_not_served, "Node '" + op.name + "': operator " + op.type + " is not served."};
}

}  // namespace

void lower_outputs(Lowering& l) {
  Draft& d = l.draft;
  for (size_t i = 0; i < l.graph.outputs.size(); ++i) {
    const GraphTensor& t = l.graph.tensor(l.graph.outputs[i]);
    int v = l.value(l.graph.outputs[i]);
    TensorDesc desc = d.desc(v);
    DraftBuffer& buffer = d.buffer_of(v);
    const bool in_place = buffer.kind == PlaceKind::arena && is_row_major(desc.shape, desc.layout) && desc.layout.offset == 0 &&
                          buffer.elements == desc.elements() && desc.elements() > 0;
    if (in_place) {
      buffer.kind = PlaceKind::output;
      buffer.index = static_cast<int>(i);
    } else {
      const int out = d.make(t.name, t.dtype, t.shape, order_row_major(t.shape.size()));
      d.buffer_of(out).kind = PlaceKind::output;
      d.buffer_of(out).index = static_cast<int>(i);
      d.step(t.name + "/output", {}, StageParams(CopyParams{"output"}), {v}, {out});
      v = out;
    }
    TensorDesc plain = d.desc(v);
    plain.layout = row_major(plain.shape);
    d.outputs.push_back(d.view(v, plain));
  }
}

Result<Draft> lower(const Graph& graph, const std::vector<Group>& groups) {
  Lowering l{graph, {}, std::vector<int>(graph.tensors.size(), -1)};
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphTensor& t = graph.tensor(graph.inputs[i]);
    const int v = l.draft.make(t.name, t.dtype, t.shape, order_row_major(t.shape.size()));
    DraftBuffer& buffer = l.draft.buffer_of(v);
    buffer.kind = PlaceKind::input, buffer.index = static_cast<int>(i), buffer.fixed = true;
    // An input whose value was bound has become a constant; its place stays so that the caller's list keeps its order.
    if (!t.constant) l.set(graph.inputs[i], v);
    l.draft.inputs.push_back(v);
  }
  for (const Group& group : groups) SPARKLE_CHECK(lower_group(l, group));
  lower_outputs(l);
  return std::move(l.draft);
}

}  // namespace sparkle
