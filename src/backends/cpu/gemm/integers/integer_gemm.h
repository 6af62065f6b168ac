// Gemm stages on 8-bit integers: the loops around the micro-kernel and the CpuKernel.
#pragma once

#include "backends/cpu/cpu_kernel.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

Result<CpuKernelPtr> make_integer_gemm(const Stage& stage, const GemmSchedule& schedule, bool constant_weights);

}  // namespace sparkle::cpu
