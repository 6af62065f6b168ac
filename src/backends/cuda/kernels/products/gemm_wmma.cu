// The plain product by fragments, of operands in fp32 and in fp16.
#include "backends/cuda/kernels/gemm_wmma.cuh"

using namespace sparkle::cuda;

SPARKLE_KERNEL(sparkle_gemm_wmma_f32, GemmRecord, kWmmaThreads, 4) { GemmWmma<false>::run(record); }
SPARKLE_KERNEL(sparkle_gemm_wmma_f16, GemmRecord, kWmmaThreads, 4) { GemmWmma<true>::run(record); }
