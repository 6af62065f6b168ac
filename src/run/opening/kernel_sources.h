// What a GPU would be given for a stage, in words; also for devices that are not here.
#pragma once

#include <string>

#include "device/device.h"
#include "families/stage.h"

namespace sparkle {

// A paragraph a launch: the kernel, its threads, its constants, and the text of programs that are printed for it. `constants`:
// bit i says that operand i never changes. Errors: no_kernel where the device runs no kernels by launches or this build lacks
// its backend, and those of compiling.
Result<std::string> kernel_sources(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants);

}  // namespace sparkle
