// The gemm family's variant `one_output` on CUDA.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// An output a thread over any layout, filters as they come.
Result<CudaKernelPtr> make_gemm_one_output(const Stage& stage, const Workshop& shop, uint32_t constants);

}  // namespace sparkle::cuda
