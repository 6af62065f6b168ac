// Operands of a number per channel, scale and bias, as kernels on floats read them: f32, side by side.
#pragma once

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

Element element_of(DType type);

// Binds `operand` to the address at `place` of the record of `product`: as it is where it is such, packed once where it is
// constant, else converted by a launch of `kernel` into the workspace from `at` on, which grows.
Status add_channel_operand(CudaKernel& kernel, KernelLaunch& product, const Workshop& shop, int operand, size_t place,
                           bool constant, int64_t& at);

}  // namespace sparkle::cuda
