// The loop nest of a pointwise stage, for its interpreter and for programs that are printed.
#pragma once

#include <vector>

#include "families/stage.h"

namespace sparkle::cuda {

// One axis of the loop nest: its size, and the stride of each operand along it, the output's last.
struct PointwiseAxis {
  int64_t size = 1;
  std::vector<int64_t> strides;
};

// Axes of more than one element, the output's outermost first, neighbours merged where all operands pass from one to the next
// without a jump.
std::vector<PointwiseAxis> merged_axes(const Stage& stage);

}  // namespace sparkle::cuda
