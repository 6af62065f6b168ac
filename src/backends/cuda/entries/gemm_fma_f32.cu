// The kernels of gemm_fma_variants.inc.
#include "backends/cuda/kernels/gemm_fma.cuh"

using namespace sparkle::cuda;

#define GEMM_FMA(m, n, loader, warps_m, warps_n, stages, blocks)                                            \
  SPARKLE_KERNEL(sparkle_gemm_fma_##m##x##n##_##loader##_f32, GemmRecord, 32 * warps_m * warps_n, blocks) { \
    GemmFma<GemmLoader::loader, warps_m, warps_n, stages>::run(record);                                     \
  }
#include "backends/cuda/kernels/gemm_fma_variants.inc"
