// A model that is made for a batch of one, given a larger one, where each item provably stays by itself: the first axis of each
// input, of size 1, is followed through all operators, each of which must keep it the first axis and treat its places alike.
#pragma once

#include "graph/graph.h"

namespace sparkle {

// The graph for `rows` items, and the first axis of all that the items decide that long: row i of each output is what the graph
// gives for row i of its inputs. Shapes are bound and attributes resolved. Errors: bad_usage naming the operator that does not
// keep items apart, or the input or output that has no axis for them; those of bind().
Result<Graph> rebatch(const Graph& graph, int64_t rows);

}  // namespace sparkle
