// Graph: constants, text, and which inputs must be known by value.
#include "graph/graph.h"

namespace sparkle {

TensorId Graph::add_constant(std::string tensor_name, HostTensor value) {
  GraphTensor t;
  t.name = std::move(tensor_name);
  t.dtype = value.dtype;
  t.shape = value.shape;
  t.known = t.rank_known = true;
  t.constant = std::move(value);
  return add(std::move(t));
}

namespace {

// "1x3x?x?", with '?' for sizes and '*' for ranks that are not known, "-" for an absent input.
std::string shape_text(const Graph& graph, TensorId id) {
  if (id == kAbsent) return "-";
  const GraphTensor& t = graph.tensor(id);
  if (!t.known && !t.rank_known) return "*";
  if (t.shape.empty()) return "scalar";
  std::string s;
  for (int i = 0; i < t.shape.size(); ++i) {
    if (i) s += 'x';
    s += t.shape[i] < 0 ? "?" : std::to_string(t.shape[i]);
  }
  return s;
}

std::string list_text(const Graph& graph, const std::vector<TensorId>& ids) {
  std::string s = "[";
  for (size_t i = 0; i < ids.size(); ++i) s += (i ? ", " : "") + shape_text(graph, ids[i]);
  return s + "]";
}

}  // namespace

bool decides_by_value(const OpParams& params, size_t i) {
  if (std::holds_alternative<ConstantOfShapeOp>(params) || std::holds_alternative<RangeOp>(params)) return true;
  if (const auto* composed = std::get_if<ComposedOp>(&params)) return decides_by_value(*composed, i);
  if (i == 0) return false;
  if (std::holds_alternative<OneHotOp>(params)) return i == 1;
  if (std::holds_alternative<NonMaxSuppressionOp>(params)) return i > 1;
  if (std::holds_alternative<TopKOp>(params) || std::holds_alternative<CumSumOp>(params) ||
      std::holds_alternative<TriluOp>(params) || std::holds_alternative<CenterCropPadOp>(params))
    return true;
  return std::holds_alternative<ReduceOp>(params) || std::holds_alternative<SplitOp>(params) ||
         std::holds_alternative<SliceOp>(params) || std::holds_alternative<ReshapeOp>(params) ||
         std::holds_alternative<ExpandOp>(params) || std::holds_alternative<TileOp>(params) ||
         std::holds_alternative<PadOp>(params) || std::holds_alternative<ResizeOp>(params);
}

std::string to_text(const Graph& graph) {
  std::string text;
  for (const Op& op : graph.ops)
    text += op.name + ' ' + op.type + ' ' + list_text(graph, op.inputs) + " -> " + list_text(graph, op.outputs) + '\n';
  return text;
}

std::vector<bool> tensors_needed_by_value(const Graph& graph) {
  std::vector<bool> needed(graph.tensors.size(), false);
  for (size_t n = graph.ops.size(); n-- > 0;) {
    const Op& op = graph.ops[n];
    bool all = false;
    for (TensorId out : op.outputs) all = all || (out != kAbsent && needed[static_cast<size_t>(out)]);
    // A shape as a value asks for no value behind it.
    if (std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params)) continue;
    if (std::holds_alternative<HostOp>(op.params)) continue;  // it has values whenever it runs
    for (size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] != kAbsent && (all || decides_by_value(op.params, i))) needed[static_cast<size_t>(op.inputs[i])] = true;
  }
  return needed;
}

std::vector<bool> inputs_needed_by_value(const Graph& graph) {
  const std::vector<bool> needed = tensors_needed_by_value(graph);
  std::vector<bool> result;
  for (TensorId id : graph.inputs) result.push_back(needed[static_cast<size_t>(id)] && !graph.tensor(id).constant);
  return result;
}

}  // namespace sparkle
