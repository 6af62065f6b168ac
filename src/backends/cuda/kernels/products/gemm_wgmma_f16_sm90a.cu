// The kernels of gemm_wgmma_variants.inc and the halo kernel on fp16.
#include "backends/cuda/kernels/gemm_halo.cuh"
#include "backends/cuda/kernels/gemm_wgmma.cuh"

using namespace sparkle::cuda;

#define GEMM_WGMMA(m, n, stages, cluster)                                                               \
  SPARKLE_KERNEL_WITH_PROLOGUE(sparkle_gemm_wgmma_##m##x##n##x##cluster##_f16, GemmTmaRecord, 384, 1) { \
    GemmWgmma<Operand::f16, m, n, stages, cluster>::run(record);                                        \
  }
#include "backends/cuda/kernels/gemm_wgmma_variants.inc"
SPARKLE_KERNEL_WITH_PROLOGUE(sparkle_gemm_halo_f16, GemmHaloRecord, 384, 1) { GemmHalo<Operand::f16>::run(record); }
