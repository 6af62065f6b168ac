// The kernels of gemm_wgmma_variants.inc and the halo kernel on bytes: filters signed, pixels signed here and unsigned in
// gemm_wgmma_u8_sm90a.cu.
#include "backends/cuda/kernels/gemm_halo.cuh"
#include "backends/cuda/kernels/gemm_wgmma.cuh"

using namespace sparkle::cuda;

#define GEMM_WGMMA(m, n, stages, cluster)                                                              \
  SPARKLE_KERNEL_WITH_PROLOGUE(sparkle_gemm_wgmma_##m##x##n##x##cluster##_i8, GemmTmaRecord, 384, 1) { \
    GemmWgmma<Operand::i8, m, n, stages, cluster>::run(record);                                        \
  }
#include "backends/cuda/kernels/gemm_wgmma_variants.inc"
SPARKLE_KERNEL_WITH_PROLOGUE(sparkle_gemm_halo_i8, GemmHaloRecord, 384, 1) { GemmHalo<Operand::i8>::run(record); }
