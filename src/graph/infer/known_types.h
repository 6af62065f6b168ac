// Element types that are known before any shape is: by operator, from the inputs of the model on.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

// One per tensor of a graph that is not bound yet; nothing behind operators that are not supported.
std::vector<std::optional<DType>> known_types(const Graph& graph);
// The same of a body, whose inputs may have any type.
std::vector<std::optional<DType>> known_types(const Graph& graph, const std::vector<std::optional<DType>>& of_inputs);
// The types of the inputs of a HostOp's body, from those of the tensors around it.
std::vector<std::optional<DType>> body_input_types(const Op& op, size_t body, const std::vector<std::optional<DType>>& types);

// True per tensor whose values come from the data: not constant, no shape, not computed from such alone. The others are folded
// when the graph is bound.
std::vector<bool> from_data(const Graph& graph);

}  // namespace sparkle
