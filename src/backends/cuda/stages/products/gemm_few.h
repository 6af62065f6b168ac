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

}  // namespace sparkle::cuda
