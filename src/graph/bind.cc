// bind(): a copy of the graph for given inputs, operator by operator in topological order: infer the shapes, fold what
// depends on constants alone. Constants are shared with the source graph, so that caches keyed by their bytes stay valid.
#include "base/out_of_memory.h"
#include "graph/einsum.h"
#include "graph/evaluate.h"
#include "graph/graph_text.h"
#include "graph/infer.h"
#include "graph/rewrites/editor.h"

namespace sparkle {
namespace {

Error input_error(const GraphTensor& t, Reason reason, const std::string& what) {
  return {reason, "Input '" + t.name + "': " + what + "."};
}

Status bind_input(GraphTensor& t, const InputBinding& binding) {
  if (t.rank_known || t.known) {
    bool fits = t.shape.size() == binding.shape.size();
    for (int i = 0; fits && i < t.shape.size(); ++i) fits = t.shape[i] < 0 || t.shape[i] == binding.shape[i];
    if (!fits) {
      std::string declared;
      for (int i = 0; i < t.shape.size(); ++i) declared += (i ? "x" : "") + (t.shape[i] < 0 ? "?" : std::to_string(t.shape[i]));
      return input_error(t, Reason::bad_input,
                         "the shape " + binding.shape.to_string() + " was given, but the model declares " +
                             (declared.empty() ? "a scalar" : declared));
    }
  }
  if (!checked_bytes(t.dtype, binding.shape))
    return input_error(t, Reason::size_overflow, "the shape " + binding.shape.to_string() + " is more than can be addressed");
  t.shape = binding.shape;
  t.known = t.rank_known = true;
  if (binding.value) {
    if (binding.value->dtype != t.dtype || binding.value->shape != binding.shape)
      return input_error(t, Reason::bad_input,
                         "the value is " + std::string(name_of(binding.value->dtype)) + " of shape " +
                             binding.value->shape.to_string() + ", but " + std::string(name_of(t.dtype)) + " of shape " +
                             binding.shape.to_string() + " was announced");
    t.constant = binding.value;
  }
  return ok();
}

// Clip with a bound known at run time only or of an integer type, which need not fit a double: the maximum with the lower, then
// the minimum with the upper bound.
bool needs_split(const Graph& g, const Op& op) {
  const auto* node = std::get_if<PointwiseNode>(&op.params);
  if (!node || node->op != PointwiseOp::clip) return false;
  for (size_t i = 1; i < op.inputs.size(); ++i)
    if (op.inputs[i] != kAbsent && (!g.tensor(op.inputs[i]).constant || !is_float(g.tensor(op.inputs[i]).dtype))) return true;
  return false;
}

std::vector<Op> split_clip(Graph& g, const Op& clip) {
  std::vector<Op> steps;
  TensorId x = clip.inputs[0];
  for (size_t i = 1; i < clip.inputs.size() && i < 3; ++i) {
    if (clip.inputs[i] == kAbsent) continue;
    GraphTensor between;
    between.name = clip.name + (i == 1 ? "_at_least" : "_at_most");
    between.dtype = g.tensor(x).dtype;
    const TensorId y = g.add(std::move(between));
    steps.push_back(
        {clip.name, clip.type, PointwiseNode{i == 1 ? PointwiseOp::max : PointwiseOp::min}, {x, clip.inputs[i]}, {y}});
    x = y;
  }
  steps.back().outputs = clip.outputs;
  return steps;
}

// How many rows of an open tensor count is known after the run: only a copy of it can be planned.
Status pass_on_open_rows(Graph& g, const Op& op) {
  for (TensorId id : op.inputs) {
    if (id == kAbsent || !g.tensor(id).open) continue;
    const auto* node = std::get_if<PointwiseNode>(&op.params);
    if (!node || node->op != PointwiseOp::identity)
      return Error{Reason::operator_not_served, "Node '" + op.name + "' (" + op.type + "): its input '" + g.tensor(id).name +
                                                    "' has a number of rows that only the data tells; such a tensor can be an "
                                                    "output of the model, but nothing else may read it."};
    g.tensor(op.outputs[0]).open = true;
  }
  return ok();
}

bool all_constant(const Graph& g, const Op& op) {
  for (TensorId id : op.inputs)
    if (id != kAbsent && !g.tensor(id).constant) return false;
  return true;
}

// Puts the operator's value into its outputs where it is known; true then.
Result<bool> fold(Graph& g, const Op& op, int64_t& budget) {
  const bool by_shape = std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params);
  if (!by_shape && (!all_constant(g, op) || !worth_folding(g, op, budget))) return false;
  auto values = evaluate_resolved(g, op);
  if (!values.ok()) {
    if (values.error().reason == Reason::operator_not_served) return false;
    return values.take_error();
  }
  for (size_t i = 0; i < op.outputs.size() && i < values->size(); ++i)
    if (op.outputs[i] != kAbsent) g.tensor(op.outputs[i]).constant = std::move((*values)[i]);
  return true;
}

Result<Graph> bound(const Graph& source, const std::vector<InputBinding>& inputs) {
  Graph g = source;
  if (inputs.size() != g.inputs.size())
    return Error{Reason::bad_input, "The model has " + std::to_string(g.inputs.size()) + " inputs, but " +
                                        std::to_string(inputs.size()) + " were given."};
  for (size_t i = 0; i < inputs.size(); ++i) SPARKLE_CHECK(bind_input(g.tensor(g.inputs[i]), inputs[i]));
  remove_dead_ops(g);
  std::vector<bool> ready(g.tensors.size(), false);
  for (TensorId id : g.inputs) ready[static_cast<size_t>(id)] = true;
  for (size_t i = 0; i < g.tensors.size(); ++i) {
    GraphTensor& t = g.tensors[i];
    if (!t.constant) continue;
    t.dtype = t.constant->dtype;
    t.shape = t.constant->shape;
    t.known = t.rank_known = ready[i] = true;
  }
  std::vector<Op> queue = std::move(g.ops);
  g.ops.clear();
  g.ops.reserve(queue.size());
  int64_t budget = kFoldedBytes;
  const auto place = [&](Op& op) -> Status {
    for (TensorId id : op.inputs)
      if (id != kAbsent && !ready[static_cast<size_t>(id)])
        return Error{Reason::bad_model, "Node '" + op.name + "' (" + op.type + "): its input '" + g.tensor(id).name +
                                            "' is not an input of the model nor computed before it."};
    InferContext context(g, op);
    SPARKLE_CHECK(infer(context));
    SPARKLE_CHECK(pass_on_open_rows(g, op));
    ready.resize(g.tensors.size(), false);
    for (TensorId id : op.outputs)
      if (id != kAbsent) ready[static_cast<size_t>(id)] = true;
    SPARKLE_TRY(folded, fold(g, op, budget));
    if (!folded) g.ops.push_back(std::move(op));
    return ok();
  };
  for (Op& op : queue) {
    if (std::holds_alternative<EinsumOp>(op.params)) {
      SPARKLE_TRY(steps, expand_einsum(g, op));
      ready.resize(g.tensors.size(), false);
      for (Op& step : steps) SPARKLE_CHECK(place(step));
    } else if (needs_split(g, op)) {
      for (Op& step : split_clip(g, op)) {
        ready.resize(g.tensors.size(), false);
        SPARKLE_CHECK(place(step));
      }
    } else {
      SPARKLE_CHECK(place(op));
    }
  }
  for (TensorId id : g.outputs)
    if (!ready[static_cast<size_t>(id)])
      return Error{Reason::bad_model, "The output '" + g.tensor(id).name + "' is computed by no node."};
  remove_dead_ops(g);
  remove_dead_tensors(g);
  return g;
}

Result<Graph> inferred_again(Graph g) {
  std::vector<bool> ready(g.tensors.size(), false);
  for (size_t i = 0; i < g.tensors.size(); ++i) ready[i] = g.tensors[i].constant.has_value();
  for (TensorId id : g.inputs) ready[static_cast<size_t>(id)] = true;
  for (Op& op : g.ops) {
    for (TensorId id : op.inputs)
      if (id != kAbsent && !ready[static_cast<size_t>(id)])
        return Error{Reason::bad_model, "Node '" + op.name + "' (" + op.type + "): its input '" + g.tensor(id).name +
                                            "' is not computed before it."};
    InferContext context(g, op);
    SPARKLE_CHECK(infer(context));
    SPARKLE_CHECK(pass_on_open_rows(g, op));
    for (TensorId id : op.outputs)
      if (id != kAbsent) ready[static_cast<size_t>(id)] = true;
  }
  for (TensorId id : g.outputs)
    if (!ready[static_cast<size_t>(id)])
      return Error{Reason::bad_model, "The output '" + g.tensor(id).name + "' is computed by no node."};
  return g;
}

}  // namespace

Result<Graph> infer_again(Graph graph) {
  return guard_memory("Reading the graph of a compiled model", [&] { return inferred_again(std::move(graph)); });
}

Result<Graph> bind(const Graph& source, const std::vector<InputBinding>& inputs) {
  return guard_memory("The model for these inputs", [&] { return bound(source, inputs); });
}

}  // namespace sparkle
