// bind(): a copy of the graph for given inputs, operator by operator in topological order: infer the shapes, fold what
// depends on constants alone. Constants are shared with the source graph, so that caches keyed by their bytes stay valid.
#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/system/out_of_memory.h"
#include "base/printable.h"
#include "graph/composed/compose.h"
#include "graph/einsum.h"
#include "graph/evaluate/evaluate.h"
#include "graph/graph_text.h"
#include "graph/infer/infer.h"
#include "graph/refusals.h"
#include "graph/integer_rows.h"
#include "graph/rewrites/editor.h"
#include "graph/evaluate/values.h"

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
// the minimum with the upper bound. A bound that is NaN makes all NaN, as it does there.
bool needs_split(const Graph& g, const Op& op) {
  const auto* node = std::get_if<PointwiseNode>(&op.params);
  if (!node || node->op != PointwiseOp::clip) return false;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[i] == kAbsent) continue;
    const std::optional<HostTensor>& bound = g.tensor(op.inputs[i]).constant;
    if (!bound || !is_float(bound->dtype) || (bound->elements() == 1 && std::isnan(scalar(*bound)))) return true;
  }
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

// The types of outputs must be what the model declares: a reader of the file counts on it. Sizes that are declared otherwise
// are left behind by tools that change a model; the real ones hold, and it is said.
Status check_declared(const Graph& g) {
  std::vector<Refusal> refusals;
  for (size_t i = 0; i < g.declared.size() && i < g.outputs.size(); ++i) {
    const DeclaredOutput& said = g.declared[i];
    const GraphTensor& t = g.tensor(g.outputs[i]);
    bool fits = !said.rank_known || said.shape.size() == t.shape.size();
    for (int a = 0; fits && said.rank_known && a < t.shape.size(); ++a)
      fits = said.shape[a] < 0 || said.shape[a] == t.shape[a] || (a == 0 && t.open);
    if (said.dtype && *said.dtype != t.dtype) {
      refusals.push_back(wrongly_declared(t.name, *said.dtype, t.dtype));
    } else if (!fits) {
      std::string sizes;
      for (int a = 0; a < said.shape.size(); ++a)
        sizes += (a ? "x" : "") + (said.shape[a] < 0 ? "?" : std::to_string(said.shape[a]));
      log(LogLevel::warning, "'" + printable(g.name) + "': the model declares its output '" + printable(t.name) +
                                 "' with the shape " + (sizes.empty() ? "scalar" : sizes) +
                                 ", but for these inputs its nodes compute " + t.shape.to_string() + ", which is what it has.");
    }
  }
  return refusals.empty() ? ok() : Status(refused(g.name, refusals));
}

bool all_constant(const Graph& g, const Op& op) {
  for (TensorId id : op.inputs)
    if (id != kAbsent && !g.tensor(id).constant) return false;
  return true;
}

// Which tensors, by id, are needed by value to know shapes or attributes behind them, and which hang on values of inputs.
struct KnownValues {
  std::vector<bool> needed, of_inputs;
  static bool in(const std::vector<bool>& set, TensorId id) {
    return id != kAbsent && static_cast<size_t>(id) < set.size() && set[static_cast<size_t>(id)];
  }
  void pass_on(const Op& op, size_t tensors) {
    of_inputs.resize(tensors, false);
    const bool by_shape = std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params);
    const bool by_value =
        !by_shape && std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return in(of_inputs, id); });
    for (TensorId id : op.outputs)
      if (id != kAbsent && by_value) of_inputs[static_cast<size_t>(id)] = true;
  }
};

// Puts the operator's value into its outputs where it is known; true then. What has no evaluator is left to the run, unless a
// value is needed and comes from constants of the model: then any operator is run here and now. (Values of inputs could ask for
// a whole network on plain loops.)
Result<bool> fold(Graph& g, const Op& op, const KnownValues& known) {
  const bool by_shape = std::holds_alternative<ShapeOp>(op.params) || std::holds_alternative<SizeOp>(op.params);
  if (!by_shape && !all_constant(g, op)) return false;
  const bool needed = std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
    return KnownValues::in(known.needed, id) && !KnownValues::in(known.of_inputs, id);
  });
  const auto too_much = [&] {
    return Error{Reason::operator_not_served, "Node '" + op.name + "' (" + op.type +
                                                  "): its value decides a shape or an attribute, and is too large or takes too "
                                                  "long to compute before the run; store the value itself in the model."};
  };
  FoldingCost cost = by_shape ? FoldingCost{} : folding_cost(g, op);
  if (!worth_folding(op, cost, g.folding)) return needed ? Result<bool>(too_much()) : Result<bool>(false);
  auto values = evaluate_resolved(g, op);
  if (!values.ok() && values.error().reason == Reason::operator_not_served && needed) {
    cost = folding_cost_by_plan(g, op);
    if (!worth_folding(op, cost, g.folding)) return too_much();
    values = evaluate_by_plan(g, op);
    if (!values.ok()) return false;  // refused where it is read
  }
  if (!values.ok()) {
    if (values.error().reason == Reason::operator_not_served) return false;
    return values.take_error();
  }
  take(cost, g.folding);
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
  KnownValues known{tensors_needed_by_value(g), std::vector<bool>(g.tensors.size(), false)};
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].value) known.of_inputs[static_cast<size_t>(g.inputs[i])] = true;
  std::vector<Op> queue = std::move(g.ops);
  g.ops.clear();
  g.ops.reserve(queue.size());
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
    known.pass_on(op, g.tensors.size());
    SPARKLE_TRY(folded, fold(g, op, known));
    if (!folded) g.ops.push_back(std::move(op));
    return ok();
  };
  for (Op& op : queue) {
    if (std::holds_alternative<EinsumOp>(op.params)) {
      SPARKLE_TRY(steps, expand_einsum(g, op));
      ready.resize(g.tensors.size(), false);
      for (Op& step : steps) SPARKLE_CHECK(place(step));
    } else if (std::holds_alternative<ComposedOp>(op.params)) {
      const size_t before = g.tensors.size();
      SPARKLE_TRY(steps, expand_composed(g, op));
      ready.resize(g.tensors.size(), false);
      for (size_t i = before; i < g.tensors.size(); ++i) ready[i] = g.tensors[i].constant.has_value();
      for (Op& step : steps) SPARKLE_CHECK(place(step));
    } else if (has_zero_points_by_row(g, op)) {
      std::vector<Op> steps = expand_zero_points(g, op);
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
  SPARKLE_CHECK(check_declared(g));
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
