// Blocks: chains of convolutions that can become one step of the inverted family (1x1 expand - depthwise - 1x1 project, or the
// last two). Found in the draft, where layouts and readers are settled; the planner takes one where it costs less than its
// layers apart (docs/decisions/0009). Squeeze and excitation reads the depthwise result as a whole before it is projected, so
// such a block never becomes one step.
#pragma once

#include <optional>

#include "plan/choose/choose.h"

namespace sparkle {

// Steps of the draft; -1: none. The project step is -1 where something else reads the depthwise result.
struct Block {
  int expand = -1, depthwise = -1, project = -1;
};
// One per depthwise step, in the order of these.
std::vector<Block> find_blocks(const Draft& draft);

// The block as one step: with the expansion or, `expand` false, without it.
DraftStep block_step(const Draft& draft, const Block& block, bool expand);

// What became of the draft's steps: the choice of each that runs, and the step itself where it stands for several of them.
struct ChosenStep {
  std::optional<DraftStep> block;
  Choice choice;
  bool dropped = false;  // part of a block, or nothing to compute
};
// Puts blocks in the place of their last step where that costs less, or where options.fusion says so; others get a candidate
// that says why not.
void choose_blocks(const Draft& draft, const Device& device, const PlanOptions& options, std::vector<ChosenStep>& steps);

}  // namespace sparkle
