// The kernels of gemm_float8_variants.inc on floats of 8 bits, e4m3.
#include "backends/cuda/kernels/gemm_wgmma.cuh"

using namespace sparkle::cuda;

#define GEMM_WGMMA(m, n, stages, cluster)                                                                  \
  SPARKLE_KERNEL_WITH_PROLOGUE(sparkle_gemm_wgmma_##m##x##n##x##cluster##_e4m3, GemmTmaRecord, 384, 1) { \
    GemmWgmma<Operand::e4m3, m, n, stages, cluster>::run(record);                                          \
  }
#include "backends/cuda/kernels/products/gemm_float8_variants.inc"
