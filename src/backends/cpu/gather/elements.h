// The forms of gather whose indices name single elements or tuples (families/gather/gather.h).
#pragma once

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

Result<CpuKernelPtr> make_gather_elements(const Stage& stage, const LoopSchedule& schedule);
// x is row-major. Errors: layout_not_served.
Result<CpuKernelPtr> make_gather_tuples(const Stage& stage, const LoopSchedule& schedule, const RowMoves& rows);

}  // namespace sparkle::cpu
