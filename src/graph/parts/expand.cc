#include "graph/parts/expand.h"

#include <algorithm>
#include <limits>

#include "graph/evaluate/values.h"
#include "graph/host_inputs.h"
#include "graph/infer/known_types.h"
#include "graph/rewrites/editor.h"

namespace sparkle {
namespace {

constexpr int kMostRounds = 32;
constexpr int64_t kMostUnrolled = 512;  // operators that one loop may become
constexpr size_t kMostAdded = 1 << 14;  // operators that all of them may, in one model
constexpr int kMostTries = 64;          // conditions that shapes are asked for: each takes a pass over the graph

std::optional<bool> truth(const Graph& g, TensorId id) {
  if (id == kAbsent) return true;
  const auto& value = g.tensor(id).constant;
  if (!value || value->elements() != 1 || value->dtype != DType::boolean) return std::nullopt;
  return *value->data<uint8_t>() != 0;
}

class Expander {
 public:
  Expander(Graph& graph, size_t& added) : g_(graph), added_(added) {}

  // True: something was replaced.
  bool sweep() {
    bool changed = false;
    std::vector<Op> queue = std::move(g_.ops);
    g_.ops.clear();
    for (Op& op : queue) {
      if (replace(op)) changed = true;
      else g_.ops.push_back(std::move(op));
    }
    return changed;
  }

  // Values that shapes alone decide become constants.
  bool ask_shapes(int& tries) {
    for (TensorId id : g_.inputs)
      if (!g_.tensor(id).known) return false;
    bool changed = false;
    const std::vector<bool> data = from_data(g_);
    for (size_t i = 0; i < g_.ops.size(); ++i) {
      const auto* host = std::get_if<HostOp>(&g_.ops[i].params);
      if (!host || (host->kind != HostKind::branch && host->kind != HostKind::loop)) continue;
      for (size_t k = 0; k < (host->kind == HostKind::loop ? 2u : 1u); ++k) {
        const TensorId id = g_.ops[i].inputs[k];
        if (id == kAbsent || g_.tensor(id).constant || data[static_cast<size_t>(id)] || --tries < 0) continue;
        if (auto value = by_shapes(id)) g_.tensor(id).constant = std::move(*value), changed = true;
      }
    }
    return changed;
  }

 private:
  std::optional<HostTensor> by_shapes(TensorId id) const {
    Graph part = g_;
    part.outputs = {id};
    part.declared.clear();
    remove_dead_ops(part);
    for (const Op& op : part.ops)
      if (std::holds_alternative<HostOp>(op.params)) return std::nullopt;
    std::vector<InputBinding> bindings;
    for (TensorId input : part.inputs) bindings.push_back({part.tensor(input).shape, std::nullopt});
    auto bound = sparkle::bind(part, bindings);
    if (!bound.ok()) return std::nullopt;  // said where the model is bound itself
    return bound->tensor(bound->outputs[0]).constant;
  }

  bool replace(const Op& op) {
    const auto* host = std::get_if<HostOp>(&op.params);
    if (!host) return false;
    if (host->kind == HostKind::branch) {
      const auto condition = truth(g_, op.inputs[0]);
      if (!condition || !room_for(host->bodies[*condition ? 0 : 1]->ops.size())) return false;
      return put(op, *condition ? 0 : 1);
    }
    return host->kind == HostKind::loop && unroll(op, *host);
  }

  bool room_for(size_t operators) {
    if (added_ + operators > kMostAdded) return false;
    added_ += operators;
    return true;
  }

  // The body's operators with these tensors for its inputs; its outputs.
  std::vector<TensorId> copy_in(const Graph& body, const std::vector<TensorId>& inputs, const std::string& head) {
    std::vector<TensorId> here(body.tensors.size(), kAbsent);
    for (size_t i = 0; i < inputs.size(); ++i) here[static_cast<size_t>(body.inputs[i])] = inputs[i];
    const auto map = [&](TensorId id) {
      if (id == kAbsent) return kAbsent;
      TensorId& at = here[static_cast<size_t>(id)];
      if (at == kAbsent) {
        GraphTensor copy = body.tensor(id);
        copy.name = head + copy.name;
        at = g_.add(std::move(copy));
      }
      return at;
    };
    for (const Op& op : body.ops) {
      Op copy = op;
      copy.name = head + copy.name;
      for (TensorId& id : copy.inputs) id = map(id);
      for (TensorId& id : copy.outputs) id = map(id);
      g_.ops.push_back(std::move(copy));
    }
    std::vector<TensorId> outputs;
    for (TensorId id : body.outputs) outputs.push_back(map(id));
    return outputs;
  }

  void pass_on(const Op& op, TensorId from, TensorId to) {
    if (to != kAbsent) g_.ops.push_back({op.name, op.type, PointwiseNode{PointwiseOp::identity}, {from}, {to}});
  }

  std::vector<TensorId> read_by(const Op& op, size_t body) const {
    const HostInputs at = host_inputs(op, body);
    const auto first = op.inputs.begin() + static_cast<std::ptrdiff_t>(at.first_read);
    return {first, first + static_cast<std::ptrdiff_t>(at.read)};
  }

  bool put(const Op& op, size_t body) {
    const auto& p = std::get<HostOp>(op.params);
    const std::vector<TensorId> results = copy_in(*p.bodies[body], read_by(op, body), op.name + "/");
    for (size_t k = 0; k < op.outputs.size(); ++k) pass_on(op, results[k], op.outputs[k]);
    return true;
  }

  bool unroll(const Op& op, const HostOp& p) {
    const Graph& body = *p.bodies[0];
    if (op.inputs[0] == kAbsent || !g_.tensor(op.inputs[0]).constant || truth(g_, op.inputs[1]) != true) return false;
    const HostTensor& count = *g_.tensor(op.inputs[0]).constant;
    if (count.dtype != DType::i64 || count.elements() != 1) return false;
    const int64_t steps = std::max<int64_t>(*count.data<int64_t>(), 0);
    TensorId again = body.outputs[0];  // the condition itself, where it is only passed on
    for (const Op& inside : body.ops)
      if (const auto* node = std::get_if<PointwiseNode>(&inside.params))
        if (node->op == PointwiseOp::identity && inside.outputs[0] == again && inside.inputs[0] == body.inputs[1])
          again = body.inputs[1];
    if (again != body.inputs[1] && truth(body, again) != true) return false;
    const auto operators = static_cast<int64_t>(std::max<size_t>(body.ops.size(), 1));
    const size_t states = static_cast<size_t>(p.own) - 2;
    const bool stacks = op.outputs.size() > states;
    if (steps > kMostUnrolled / operators || (steps == 0 && stacks)) return false;
    if (!room_for(static_cast<size_t>(steps * (operators + static_cast<int64_t>(op.outputs.size()))) + op.outputs.size()))
      return false;
    std::vector<TensorId> state(op.inputs.begin() + 2, op.inputs.begin() + static_cast<std::ptrdiff_t>(p.own));
    std::vector<std::vector<TensorId>> slices(stacks ? op.outputs.size() - states : 0);
    const TensorId truthful = g_.add_constant(op.name + "/true", HostTensor::of(DType::boolean, {}, std::vector<uint8_t>{1}));
    for (int64_t i = 0; i < steps; ++i) {
      const std::string head = op.name + "/" + std::to_string(i) + "/";
      std::vector<TensorId> inputs{g_.add_constant(head + "i", HostTensor::of(DType::i64, {}, std::vector<int64_t>{i})),
                                   truthful};
      inputs.insert(inputs.end(), state.begin(), state.end());
      const std::vector<TensorId> read = read_by(op, 0);
      inputs.insert(inputs.end(), read.begin(), read.end());
      const std::vector<TensorId> results = copy_in(body, inputs, head);
      state.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(states));
      for (size_t k = 0; k < slices.size(); ++k) {
        ReshapeOp apart;
        apart.form = ReshapeOp::Form::unsqueeze, apart.target = {0}, apart.target_given = true;
        GraphTensor slice;
        slice.name = head + "slice" + std::to_string(k);
        slices[k].push_back(g_.add(std::move(slice)));
        g_.ops.push_back({op.name, op.type, apart, {results[1 + states + k]}, {slices[k].back()}});
      }
    }
    for (size_t k = 0; k < std::min(states, op.outputs.size()); ++k) pass_on(op, state[k], op.outputs[k]);
    for (size_t k = 0; k < slices.size(); ++k)
      if (op.outputs[states + k] != kAbsent)
        g_.ops.push_back({op.name, op.type, ConcatOp{0}, slices[k], {op.outputs[states + k]}});
    return true;
  }

  Graph& g_;
  size_t& added_;
};

// What folding may still cost counts for the whole model: bodies take of the same.
Status expand(Graph& graph, FoldingLimit& left, int& tries, size_t& added) {
  graph.folding = left;
  Expander expander(graph, added);
  for (int round = 0; round < kMostRounds; ++round) {
    SPARKLE_CHECK(simplify(graph));
    bool changed = expander.sweep();
    changed = expander.ask_shapes(tries) || changed;
    if (!changed) break;
  }
  left = graph.folding;
  for (Op& op : graph.ops) {
    auto* host = std::get_if<HostOp>(&op.params);
    if (!host) continue;
    for (auto& body : host->bodies) {
      Graph inside = *body;
      SPARKLE_CHECK(expand(inside, left, tries, added));
      body = std::make_shared<const Graph>(std::move(inside));
    }
  }
  graph.folding = left;
  return ok();
}

}  // namespace

bool runs_in_parts(const Graph& graph) {
  std::vector<bool> open(graph.tensors.size(), false);
  for (const Op& op : graph.ops) {
    if (std::holds_alternative<HostOp>(op.params)) return true;
    for (TensorId id : op.inputs)
      if (id != kAbsent && open[static_cast<size_t>(id)]) return true;
    if (std::holds_alternative<NonMaxSuppressionOp>(op.params))
      for (TensorId id : op.outputs)
        if (id != kAbsent) open[static_cast<size_t>(id)] = true;
  }
  return false;
}

Status expand_paths(Graph& graph) {
  int tries = kMostTries;
  size_t added = 0;
  FoldingLimit left = graph.folding;
  return expand(graph, left, tries, added);
}

}  // namespace sparkle
