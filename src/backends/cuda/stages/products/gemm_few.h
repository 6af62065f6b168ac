// The gemm variant "few": its record, and the stage's kernel.
#pragma once

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/kernels/gemm_few_record.h"
#include "families/gemm/cuda/cuda_few.h"

namespace sparkle::cuda {

// Sizes and strides, without addresses.
FewRecord few_record(const Stage& stage, const FewTile& tile);
std::string few_kernel_name(const FewTile& tile);
// Errors: the reason that few_tile() gives, as a sentence, and what the driver says.
Result<CudaKernelPtr> make_few(const Stage& stage, const Workshop& shop, uint32_t constants);

// Scale or bias as floats, whatever they are: packed once, or converted into the workspace from `at` on by a launch before the
// product's; the product's record has its address at `place`.
Status add_channel_operand(CudaKernel& kernel, KernelLaunch& product, const Workshop& shop, int operand, size_t place,
                           bool constant, int64_t& at);

}  // namespace sparkle::cuda
