// Layer normalisation and its like: every group is a row of neighbours in x and y; scale and bias lie along it or
// are missing. A row goes through all passes while it is in L1.
#pragma once

#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

// nullptr where the layouts are of another kind.
CpuKernelPtr make_normalize_rows(const Stage& stage, std::string_view unit, int64_t grain);

}  // namespace sparkle::cpu
