// What of a model's paths is known before any data is: branches whose condition is, and loops of few steps, become ordinary
// operators; bodies are simplified.
#pragma once

#include "graph/graph.h"

namespace sparkle {

// Whether some operator runs on the host between parts of the model, or reads what is known after a run alone.
bool runs_in_parts(const Graph& graph);

// Simplifies the graph and the graphs within it, puts branches with a constant condition and loops with a small constant
// number of steps in the place of their operators, and does so again until nothing is found. Conditions that only the shapes
// decide count as constant where all inputs' shapes are fixed. The work is bounded: what would grow the graph beyond it stays.
Status expand_paths(Graph& graph);

}  // namespace sparkle
