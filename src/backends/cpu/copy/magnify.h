// Moves in which each element of x is repeated a whole number of times along the two innermost axes that are indexed.
#pragma once

#include "backends/cpu/copy/indexed.h"

namespace sparkle::cpu {

// nullptr where the axes say something else or lie otherwise. Axes are listed in logical order, all of y.
CpuKernelPtr make_magnify(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows,
                          const std::vector<IndexedAxis>& axes);

}  // namespace sparkle::cpu
