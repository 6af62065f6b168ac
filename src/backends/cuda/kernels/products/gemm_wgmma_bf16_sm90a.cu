// The kernels of gemm_wgmma_variants.inc on bfloat16.
#include "backends/cuda/kernels/gemm_wgmma.cuh"

using namespace sparkle::cuda;

#define GEMM_WGMMA(m, n, stages, cluster)                                                  \
  SPARKLE_KERNEL(sparkle_gemm_wgmma_##m##x##n##x##cluster##_bf16, GemmTmaRecord, 384, 1) { \
    GemmWgmma<Operand::bf16, m, n, stages, cluster>::run(record);                          \
  }
#include "backends/cuda/kernels/gemm_wgmma_variants.inc"
