// A pointwise program as a launch of its interpreter, for whoever converts or combines elements on the way.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// `stage` is of the pointwise family; its operands are those of the caller's kernel by these numbers, its result goes to
// `result` (kWorkspace or an operand), `offset` bytes behind where that begins. Errors: layout_not_served, type_not_served.
Result<KernelLaunch> pointwise_launch(const Stage& stage, const Workshop& shop, const std::vector<int>& operands, int result,
                                      int64_t offset);

}  // namespace sparkle::cuda
