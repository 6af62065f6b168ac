// What a described device would be launched for a stage. No driver is asked, so this works for devices that are not here.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// In order; their functions and addresses are none. `constants` as in Backend::compile. Errors: those of compiling.
Result<std::vector<KernelLaunch>> launches_of(const Stage& stage, const Schedule& schedule, const Device& device,
                                              uint32_t constants);

// What it is launched with, in lines: the record's fields and the tensor maps (record_text.h), and before them the file of
// kernels/ that the kernel's code comes from, where this build holds code for cards.
std::string words_of(const KernelLaunch& launch);

}  // namespace sparkle::cuda
