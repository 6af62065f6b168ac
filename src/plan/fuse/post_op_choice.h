// Post-ops: which anchors of a graph take the pointwise program behind them into their own kernel. On devices whose kernels
// take one all do, but where the same two steps apart are predicted to be faster: no post-op costs an anchor the faster
// algorithm.
#pragma once

#include <map>

#include "plan/choose/choose.h"
#include "plan/fuse/fuse.h"

namespace sparkle {

// The graph's operators whose post-ops stay a step of their own, and why.
using PostOpsApart = std::map<int, Candidate>;

// The graph, lowered, its weights judged. Errors: those of lower().
Result<Draft> draft_with_post_ops(const Graph& graph, const Device& device, const PlanOptions& options, PostOpsApart& apart);

}  // namespace sparkle
