// Moves in which every axis of y has a table of places in x: padding and nearest resize. Index -1 stands for a constant.
#pragma once

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

// One axis: index[i] is the place in x that y's index i shows; identity where that is i itself for all of x.
struct IndexedAxis {
  std::vector<int64_t> index;
  bool identity = false;
};

// `value` is the constant as one element of y's type. Axes are listed in logical order.
CpuKernelPtr make_indexed(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows,
                          std::vector<IndexedAxis> axes, double value);

}  // namespace sparkle::cpu
