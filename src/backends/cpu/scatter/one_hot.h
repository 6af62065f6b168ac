// OneHot: the form of scatter that fills and sets (families/scatter/scatter.h).
#pragma once

#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

// All operands are row-major.
Result<CpuKernelPtr> make_one_hot(const Stage& stage, const LoopSchedule& schedule);

}  // namespace sparkle::cpu
