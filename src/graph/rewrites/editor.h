// The tools of rewrites: who makes and who uses each tensor, replacement of values, removal of what is dead.
#pragma once

#include "graph/graph.h"

namespace sparkle {

// Drops operators none of whose outputs is used, and tensors that nothing names (ids are renumbered).
bool remove_dead_ops(Graph& graph);
void remove_dead_tensors(Graph& graph);

// A graph under rewriting. Indices of operators stay valid: erased ones are left empty until finish().
class Editor {
 public:
  explicit Editor(Graph& graph);

  Graph& graph() { return graph_; }
  int count() const { return static_cast<int>(graph_.ops.size()); }
  Op& op(int i) { return graph_.ops[static_cast<size_t>(i)]; }
  bool erased(int i) const { return erased_[static_cast<size_t>(i)]; }
  GraphTensor& tensor(TensorId id) { return graph_.tensor(id); }
  const HostTensor* constant(TensorId id) const;
  // The constant input i of an operator, or nullptr.
  const HostTensor* constant_input(const Op& op, size_t i) const;
  // The operator that makes a tensor, or -1; and its parameters, if they are of this alternative.
  int producer(TensorId id) const { return id == kAbsent ? -1 : producers_[static_cast<size_t>(id)]; }
  template <class T>
  T* made_by(TensorId id) {
    const int at = producer(id);
    return at < 0 ? nullptr : std::get_if<T>(&op(at).params);
  }
  // Used once and no output of the graph: its producer may be changed or merged away.
  bool single_use(TensorId id) const { return uses_[static_cast<size_t>(id)] == 1 && !is_output_[static_cast<size_t>(id)]; }
  bool is_output(TensorId id) const { return is_output_[static_cast<size_t>(id)]; }

  void set_input(int i, size_t slot, TensorId id);
  void set_inputs(int i, std::vector<TensorId> inputs);
  // Everything that used `old` uses `by` from now on. False, and nothing done, where both are names that callers see.
  bool replace(TensorId old, TensorId by);
  void erase(int i);
  // Removes operator i, which passes its input on unchanged.
  bool bypass(int i, TensorId input);
  TensorId add_constant(const std::string& name, HostTensor value);
  // Compacts the graph.
  void finish();

 private:
  void use(TensorId id, int change);
  Graph& graph_;
  std::vector<int> producers_, uses_;
  std::vector<std::vector<int>> users_;  // operators, with leftovers
  std::vector<char> is_output_, is_input_, erased_;
};

}  // namespace sparkle
