// Fusion: which operators of a graph become one step. An anchor (a sum of products) takes the element-wise operators behind it
// into its epilogue; chains of the others become one pointwise program, which may follow an anchor as its post-op.
#pragma once

#include <set>
#include <vector>

#include "families/values/epilogue.h"
#include "graph/graph.h"

namespace sparkle {

struct Group {
  std::vector<int> ops;             // indices into graph.ops, ascending; the group runs at the place of the last
  int anchor = -1;                  // the Conv or MatMul among them, or -1
  Epilogue epilogue;                // anchors: activation, number of residuals, post-op
  std::vector<TensorId> residuals;  // anchors: before, then after the activation
  std::vector<TensorId> behind;     // anchors: what the post-op reads beside their own result
  PointwiseParams program;          // pointwise groups: over `operands`
  DType arithmetic = DType::f32;    // pointwise groups: the type in which the program is computed
  std::vector<TensorId> operands;
  TensorId output = kAbsent;  // what the group computes (operators with several outputs stay alone)
};

// Which anchors take the pointwise program behind them as their post-op.
struct PostOpRules {
  bool taken = false;   // the device's word
  std::set<int> apart;  // anchors that do without
};

// Groups in the order in which they run.
std::vector<Group> fuse(const Graph& graph, bool enabled, const PostOpRules& post_ops = {});

}  // namespace sparkle
