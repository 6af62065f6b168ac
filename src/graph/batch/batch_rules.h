// Which operators keep the items of a batch apart, by what they read.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

// An operator of a bound graph for one item, and which tensors, by id, have the items along their first axis.
struct BatchedOp {
  Graph& graph;
  const std::vector<bool>& batched;
  Op& op;
  int64_t rows;

  bool in(size_t i) const {
    return i < op.inputs.size() && op.inputs[i] != kAbsent && batched[static_cast<size_t>(op.inputs[i])];
  }
  bool given(size_t i) const { return i < op.inputs.size() && op.inputs[i] != kAbsent; }
  const Dims& shape(size_t i) const { return graph.tensor(op.inputs[i]).shape; }
  int rank(size_t i) const { return shape(i).size(); }
  const Dims& result() const { return graph.tensor(op.outputs[0]).shape; }
};

// Changes what of the operator's attributes and constants speaks of one item, so that it is about `rows` of them. Errors: the
// end of a sentence that begins with the operator ("mixes its items"). Asked only of operators that read a batched tensor.
Result<Done> keep_items_apart(BatchedOp& o);

}  // namespace sparkle
