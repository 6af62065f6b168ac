// A depthwise stage on 8-bit integers compiled for the CPU.
#pragma once

#include "backends/cpu/cpu_kernel.h"
#include "families/depthwise/depthwise.h"

namespace sparkle::cpu {

Result<CpuKernelPtr> make_integer_depthwise(const Stage& stage, const DepthwiseSchedule& schedule, uint32_t constants);

}  // namespace sparkle::cpu
