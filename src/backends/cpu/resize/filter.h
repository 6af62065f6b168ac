// A resize along one axis by filters of any length (antialiasing).
#pragma once

#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

// Row-major f32 with at most one axis resized. Errors: layout_not_served, type_not_served.
Result<CpuKernelPtr> make_resize_filter(const Stage& stage, const LoopSchedule& schedule);

}  // namespace sparkle::cpu
