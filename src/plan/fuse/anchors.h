// The anchors of a graph (its sums of products) as calls on the operands that a plan for a device would give them: what there
// is to tune.
#pragma once

#include "plan/plan.h"

namespace sparkle {

struct Anchor {
  std::string name;  // of the first step that makes this call
  AnchorCall call;
  int count = 1;                 // steps that make it
  bool constant_weights = true;  // of the first one
};

// Different calls on that device in the order of the steps; two calls are the same where tuning_key() says so. Errors: those of
// make_plan.
Result<std::vector<Anchor>> anchors_of(const Graph& graph, const Device& device, const PlanOptions& options);

}  // namespace sparkle
