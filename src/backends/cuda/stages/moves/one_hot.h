// The one-hot form of the scatter family on CUDA.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// Errors: type_not_served for indices of double precision or fewer than 32 bits.
Result<CudaKernelPtr> make_one_hot(const Stage& stage, const Workshop& shop);

}  // namespace sparkle::cuda
