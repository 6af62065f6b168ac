// Einsum as other operators: diagonals by reshaping and slicing, sums, matrix products in batches, transpositions.
#pragma once

#include "graph/graph.h"

namespace sparkle {

// The operators that compute `op`, an Einsum whose inputs' shapes are known; the last one writes its output. Operands are
// multiplied from left to right, labels summed as soon as nothing later needs them. Errors: bad_model, bad_shape,
// operator_not_served naming the node.
Result<std::vector<Op>> expand_einsum(Graph& graph, const Op& op);

}  // namespace sparkle
