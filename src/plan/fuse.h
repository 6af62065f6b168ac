// Fusion: which operators of a graph become one step. An anchor (a sum of products) takes the element-wise operators behind it
// into its epilogue; chains of the others become one pointwise program.
#pragma once

#include <vector>

#include "families/epilogue.h"
#include "graph/graph.h"

namespace sparkle {

struct Group {
  std::vector<int> ops;             // indices into graph.ops, ascending; the group runs at the place of the last
  int anchor = -1;                  // the Conv or MatMul among them, or -1
  Epilogue epilogue;                // anchors: activation and number of residuals
  std::vector<TensorId> residuals;  // anchors: before, then after the activation
  PointwiseParams program;          // pointwise groups: over `operands`
  DType arithmetic = DType::f32;    // pointwise groups: the type in which the program is computed
  std::vector<TensorId> operands;
  TensorId output = kAbsent;  // what the group computes (operators with several outputs stay alone)
};

// Groups in the order in which they run.
std::vector<Group> fuse(const Graph& graph, bool enabled);

}  // namespace sparkle
