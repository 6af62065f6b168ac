// Tails: which anchors of a graph take the pointwise program behind them into their own kernel. On devices whose kernels take
// one all do, but where the same two steps apart are predicted to be faster: no tail costs an anchor the faster algorithm.
#pragma once

#include <map>

#include "plan/choose.h"
#include "plan/fuse.h"

namespace sparkle {

// The graph's operators whose tails stay a step of their own, and why.
using TailsApart = std::map<int, Candidate>;

// The graph, lowered, its weights judged. Errors: those of lower().
Result<Draft> draft_with_tails(const Graph& graph, const Device& device, const PlanOptions& options, TailsApart& apart);

}  // namespace sparkle
