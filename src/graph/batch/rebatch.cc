#include "graph/batch/rebatch.h"

#include <algorithm>

#include "base/printable.h"
#include "graph/batch/batch_rules.h"

namespace sparkle {
namespace {

std::string begin_of(int64_t rows) {
  return "The model is made for one item a run and cannot take " + std::to_string(rows) + " of them: ";
}

bool is_one(const GraphTensor& t) { return t.known && !t.shape.empty() && t.shape[0] == 1; }

Result<Graph> bound_for_one(const Graph& graph, int64_t rows) {
  std::vector<InputBinding> bindings;
  for (const TensorId id : graph.inputs) {
    const GraphTensor& t = graph.tensor(id);
    const bool open = !t.known || std::any_of(t.shape.begin(), t.shape.end(), [](int64_t size) { return size < 0; });
    if (open || !is_one(t))
      return Error{Reason::bad_usage, begin_of(rows) + "its input '" + printable(t.name) + "' " +
                                          (open ? "leaves sizes open." : "does not begin with an axis of 1 for them.")};
    bindings.push_back({t.shape, std::nullopt});
  }
  return sparkle::bind(graph, bindings);
}

// Whether the shapes that follow from the inputs are those of one item with the first axis longer: nothing else depends on it.
Status same_but_for_rows(const Graph& changed, int64_t rows, const std::vector<bool>& batched, const Graph& one) {
  std::vector<InputBinding> bindings;
  for (const TensorId id : changed.inputs) bindings.push_back({changed.tensor(id).shape, std::nullopt});
  SPARKLE_TRY(bound, sparkle::bind(changed, bindings));
  for (size_t i = 0; i < bound.outputs.size() && i < one.outputs.size(); ++i) {
    const GraphTensor &many = bound.tensor(bound.outputs[i]), &single = one.tensor(one.outputs[i]);
    Dims want = single.shape;
    if (batched[static_cast<size_t>(one.outputs[i])]) want[0] = rows;
    if (many.shape != want)
      return Error{Reason::bad_usage, begin_of(rows) + "its output '" + printable(single.name) + "' would be " +
                                          many.shape.to_string() + " where " + want.to_string() + " is due."};
  }
  return ok();
}

}  // namespace

Result<Graph> rebatch(const Graph& graph, int64_t rows) {
  Graph simple = graph;
  SPARKLE_CHECK(simplify(simple));
  SPARKLE_TRY(one, bound_for_one(simple, rows));
  Graph many = one;
  std::vector<bool> batched(many.tensors.size(), false);
  const auto take = [&](TensorId id) {
    batched[static_cast<size_t>(id)] = true;
    many.tensor(id).shape[0] = rows;
  };
  std::vector<bool> of_items(batched);  // as `batched`, while shapes are still those of one item
  for (const TensorId id : many.inputs) of_items[static_cast<size_t>(id)] = true;
  for (Op& op : many.ops) {
    of_items.resize(many.tensors.size(), false);
    const bool reads = std::any_of(op.inputs.begin(), op.inputs.end(),
                                   [&](TensorId id) { return id != kAbsent && of_items[static_cast<size_t>(id)]; });
    if (!reads) continue;
    BatchedOp o{many, of_items, op, rows};
    Status apart = keep_items_apart(o);
    for (const TensorId id : op.outputs)
      if (apart.ok() && id != kAbsent && !is_one(many.tensor(id)))
        apart =
            Error{Reason::bad_usage, "gives '" + printable(many.tensor(id).name) + "', which has no axis for them in front"};
    if (!apart.ok()) {
      if (apart.error().reason != Reason::bad_usage) return apart.take_error();
      return Error{Reason::bad_usage, begin_of(rows) + "node '" + printable(op.name) + "' (" + printable(op.type) + ") " +
                                          apart.error().message + "."};
    }
    of_items.resize(many.tensors.size(), false);
    for (const TensorId id : op.outputs)
      if (id != kAbsent) of_items[static_cast<size_t>(id)] = true;
  }
  for (const TensorId id : many.outputs)
    if (!of_items[static_cast<size_t>(id)])
      return Error{Reason::bad_usage,
                   begin_of(rows) + "its output '" + printable(many.tensor(id).name) + "' does not depend on them."};
  batched.resize(many.tensors.size(), false);
  for (size_t id = 0; id < of_items.size(); ++id)
    if (of_items[id]) take(static_cast<TensorId>(id));
  for (DeclaredOutput& declared : many.declared)
    if (declared.rank_known && !declared.shape.empty()) declared.shape[0] = rows;
  SPARKLE_CHECK(same_but_for_rows(many, rows, batched, one));
  return many;
}

}  // namespace sparkle
