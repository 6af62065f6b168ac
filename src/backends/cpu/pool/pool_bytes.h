// Maxima of 8-bit integers: vectors of channels, every element of the window visited.
#pragma once

#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

// A max pool of u8 or i8 on the schedule's unit, channels innermost, one output.
Result<CpuKernelPtr> make_byte_pool(const Stage& stage, const LoopSchedule& schedule);

}  // namespace sparkle::cpu
