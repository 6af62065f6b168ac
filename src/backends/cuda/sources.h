// What a described device would be launched for a stage. No driver is asked, so this works for devices that are not here.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// In order; their functions and addresses are none. `constants` as in Backend::compile. Errors: those of compiling.
Result<std::vector<KernelLaunch>> launches_of(const Stage& stage, const Schedule& schedule, const Device& device,
                                              uint32_t constants);

}  // namespace sparkle::cuda
