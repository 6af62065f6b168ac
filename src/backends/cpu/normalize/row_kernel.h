// Layer normalisation and its like: every group is a row of neighbours in x and y; scale and bias lie along it, are one value
// for the row (instances as planes) or for each segment of it (groups of planes), or are missing. A row goes through all passes
// while it is in L1, a long one block by block.
#pragma once

#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

// nullptr where the layouts are of another kind.
CpuKernelPtr make_normalize_rows(const Stage& stage, std::string_view unit, int64_t grain);

}  // namespace sparkle::cpu
