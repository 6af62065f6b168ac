// The kernels of gemm_wgmma_variants.inc on i8.
#include "backends/cuda/kernels/gemm_wgmma.cuh"

using namespace sparkle::cuda;

#define GEMM_WGMMA(n, stages, cluster)                                                 \
  SPARKLE_KERNEL(sparkle_gemm_wgmma_128x##n##x##cluster##_i8, GemmTmaRecord, 384, 1) { \
    GemmWgmma<Operand::i8, n, stages, cluster>::run(record);                           \
  }
#include "backends/cuda/kernels/gemm_wgmma_variants.inc"
