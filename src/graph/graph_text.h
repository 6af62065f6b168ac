// A bound graph as text and back, without the values of its constants: what a compiled file keeps of a model, so that its plan
// can be made again where it is loaded. Not a format for exchange: no other version reads it.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace sparkle {

// One line per tensor and operator. Errors: operator_not_served where an operator is left that bind() folds or expands.
Result<std::string> bound_graph_text(const Graph& graph);

// The graph of such a text; its constants have a type and a shape, and no bytes yet. Each tensor is an input, a constant or the
// output of one operator. Errors: bad_format naming the line.
Result<Graph> graph_from_text(std::string_view text);

// Types and shapes of a bound graph inferred again from its inputs and constants, by the rules that bind() follows, so that
// nothing in it is believed; nothing is folded. Errors: those of bind().
Result<Graph> infer_again(Graph graph);

}  // namespace sparkle
