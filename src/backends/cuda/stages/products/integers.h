// Stages of the gemm and depthwise families on 8-bit integers, for CUDA.
#pragma once

#include "backends/cuda/kernels/integers/sums_record.h"
#include "backends/cuda/stages/products/gemm_record.h"
#include "families/depthwise/depthwise.h"
#include "families/integers/integers.h"

namespace sparkle::cuda {

// From one filter to the next of an operand that may hold one value for all.
int32_t filter_stride(const TensorDesc& d);

// An output a thread over any layout: the variant bytes_naive.
Result<CudaKernelPtr> make_integer_sums(const Stage& stage, const Workshop& shop);
Result<CudaKernelPtr> make_integer_depthwise(const Stage& stage, const DepthwiseSchedule& schedule, const Workshop& shop,
                                             uint32_t constants);

// Bytes for a product on Tensor Cores, whose GemmRecord begins at `at` of what is launched: the right operand as signed rows
// and what they add up to, and the zero point of x as padding - packed where they are constants, else made by a launch of
// `kernel` in the workspace from `workspace` on, which grows - scale, bias and zero points. `engine`: it copies the pixels,
// with zeros where the image ends, so that sums of the taps that are inside take the padding's place.
Status add_integer_operands(CudaKernel& kernel, KernelLaunch& product, GemmSetup& setup, size_t at, bool engine,
                            const Workshop& shop, uint32_t constants, int64_t& workspace);

}  // namespace sparkle::cuda
