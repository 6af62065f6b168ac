#include "graph/rewrites/editor.h"

#include <algorithm>

namespace sparkle {

bool remove_dead_ops(Graph& graph) {
  std::vector<char> live(graph.tensors.size(), 0);
  for (TensorId id : graph.outputs) live[static_cast<size_t>(id)] = 1;
  std::vector<char> keep(graph.ops.size(), 0);
  for (size_t n = graph.ops.size(); n-- > 0;) {
    const Op& op = graph.ops[n];
    for (TensorId id : op.outputs) keep[n] = keep[n] || (id != kAbsent && live[static_cast<size_t>(id)]);
    if (!keep[n]) continue;
    for (TensorId id : op.inputs)
      if (id != kAbsent) live[static_cast<size_t>(id)] = 1;
  }
  size_t to = 0;
  for (size_t n = 0; n < graph.ops.size(); ++n) {
    if (!keep[n]) continue;
    if (to != n) graph.ops[to] = std::move(graph.ops[n]);
    ++to;
  }
  const bool changed = to != graph.ops.size();
  graph.ops.resize(to);
  return changed;
}

void remove_dead_tensors(Graph& graph) {
  std::vector<TensorId> place(graph.tensors.size(), kAbsent);
  const auto mark = [&](const std::vector<TensorId>& ids) {
    for (TensorId id : ids)
      if (id != kAbsent) place[static_cast<size_t>(id)] = 0;
  };
  mark(graph.inputs), mark(graph.outputs);
  for (const Op& op : graph.ops) mark(op.inputs), mark(op.outputs);
  size_t to = 0;
  for (size_t i = 0; i < place.size(); ++i) {
    if (place[i] == kAbsent) continue;
    if (to != i) graph.tensors[to] = std::move(graph.tensors[i]);
    place[i] = static_cast<TensorId>(to++);
  }
  graph.tensors.resize(to);
  const auto renumber = [&](std::vector<TensorId>& ids) {
    for (TensorId& id : ids)
      if (id != kAbsent) id = place[static_cast<size_t>(id)];
  };
  renumber(graph.inputs), renumber(graph.outputs);
  for (Op& op : graph.ops) renumber(op.inputs), renumber(op.outputs);
}

Editor::Editor(Graph& graph)
    : graph_(graph),
      producers_(graph.tensors.size(), -1),
      uses_(graph.tensors.size(), 0),
      users_(graph.tensors.size()),
      is_output_(graph.tensors.size(), 0),
      is_input_(graph.tensors.size(), 0),
      erased_(graph.ops.size(), 0) {
  for (TensorId id : graph.outputs) is_output_[static_cast<size_t>(id)] = 1;
  for (TensorId id : graph.inputs) is_input_[static_cast<size_t>(id)] = 1;
  for (int i = 0; i < count(); ++i) {
    for (TensorId id : op(i).outputs)
      if (id != kAbsent) producers_[static_cast<size_t>(id)] = i;
    for (TensorId id : op(i).inputs)
      if (id != kAbsent) use(id, 1), users_[static_cast<size_t>(id)].push_back(i);
  }
}

void Editor::use(TensorId id, int change) {
  if (id != kAbsent) uses_[static_cast<size_t>(id)] += change;
}

const HostTensor* Editor::constant(TensorId id) const {
  if (id == kAbsent) return nullptr;
  const auto& value = graph_.tensor(id).constant;
  return value ? &*value : nullptr;
}

const HostTensor* Editor::constant_input(const Op& op, size_t i) const {
  return i < op.inputs.size() ? constant(op.inputs[i]) : nullptr;
}

void Editor::set_input(int i, size_t slot, TensorId id) {
  Op& target = op(i);
  if (slot >= target.inputs.size()) target.inputs.resize(slot + 1, kAbsent);
  use(target.inputs[slot], -1);
  target.inputs[slot] = id;
  use(id, 1);
  if (id != kAbsent) users_[static_cast<size_t>(id)].push_back(i);
}

void Editor::set_inputs(int i, std::vector<TensorId> inputs) {
  for (TensorId id : op(i).inputs) use(id, -1);
  op(i).inputs = std::move(inputs);
  for (TensorId id : op(i).inputs)
    if (id != kAbsent) use(id, 1), users_[static_cast<size_t>(id)].push_back(i);
}

bool Editor::replace(TensorId old, TensorId by) {
  if (old == by) return true;
  const auto redirect = [&](TensorId from, TensorId to) {
    std::vector<int> users = std::move(users_[static_cast<size_t>(from)]);
    users_[static_cast<size_t>(from)].clear();
    for (int user : users) {
      if (erased(user)) continue;
      for (size_t slot = 0; slot < op(user).inputs.size(); ++slot)
        if (op(user).inputs[slot] == from) set_input(user, slot, to);
    }
  };
  if (!is_output(old)) {
    redirect(old, by);
    return true;
  }
  // Callers know the value as `old`: whoever makes `by` makes `old` instead.
  if (const HostTensor* value = constant(by)) {
    tensor(old).constant = *value;
    return true;
  }
  const int producing_op = producer(by);
  if (producing_op < 0 || is_output(by) || is_input_[static_cast<size_t>(by)]) return false;
  for (TensorId& id : op(producing_op).outputs)
    if (id == by) id = old;
  producers_[static_cast<size_t>(old)] = producing_op;
  producers_[static_cast<size_t>(by)] = -1;
  redirect(by, old);
  return true;
}

void Editor::erase(int i) {
  for (TensorId id : op(i).inputs) use(id, -1);
  for (TensorId id : op(i).outputs)
    if (id != kAbsent && producer(id) == i) producers_[static_cast<size_t>(id)] = -1;
  op(i).inputs.clear();
  op(i).outputs.clear();
  erased_[static_cast<size_t>(i)] = 1;
}

bool Editor::bypass(int i, TensorId input) {
  if (op(i).outputs.empty() || op(i).outputs[0] == kAbsent || input == kAbsent) return false;
  for (size_t k = 1; k < op(i).outputs.size(); ++k)
    if (op(i).outputs[k] != kAbsent && (uses_[static_cast<size_t>(op(i).outputs[k])] > 0 || is_output(op(i).outputs[k])))
      return false;
  if (!replace(op(i).outputs[0], input)) return false;
  erase(i);
  return true;
}

TensorId Editor::add_constant(const std::string& name, HostTensor value) {
  const TensorId id = graph_.add_constant(name, std::move(value));
  producers_.push_back(-1);
  uses_.push_back(0);
  users_.emplace_back();
  is_output_.push_back(0);
  is_input_.push_back(0);
  return id;
}

void Editor::finish() {
  std::erase_if(graph_.ops, [&](const Op& op) { return erased(static_cast<int>(&op - graph_.ops.data())); });
  erased_.assign(graph_.ops.size(), 0);
  remove_dead_ops(graph_);
  remove_dead_tensors(graph_);
}

}  // namespace sparkle
