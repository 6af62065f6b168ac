// MatMulInteger whose zero points are not one number (a) or one per column (b): a's may be one per row, and both may differ
// from matrix to matrix. The integer kernels know no such zero points; the sums are the same, taken off before a product of
// i32.
#pragma once

#include "graph/graph.h"

namespace sparkle {

// Whether `op`, whose inputs' shapes are known, is such a product.
bool has_zero_points_by_row(const Graph& graph, const Op& op);

// The operators that compute it; the last one writes its output. Zero points of one axis belong to the rows of a and the
// columns of b; others are shaped like their matrices with 1 in place of the summed axis.
std::vector<Op> expand_zero_points(Graph& graph, const Op& op);

}  // namespace sparkle
