// The product in strict fp32, in tiles for many filters, for some and for few.
#include "backends/cuda/kernels/gemm_fma.cuh"

using namespace sparkle::cuda;

#define GEMM_FMA(m, n, stages, blocks)                                                                                      \
  SPARKLE_KERNEL(sparkle_gemm_fma_##m##x##n##_f32, GemmRecord, (GemmFma<GemmLoader::chunks, m, n, stages>::kThreads),       \
                 blocks) {                                                                                                  \
    GemmFma<GemmLoader::chunks, m, n, stages>::run(record);                                                                 \
  }                                                                                                                         \
  SPARKLE_KERNEL(sparkle_gemm_fma_##m##x##n##_elements_f32, GemmRecord, (GemmFma<GemmLoader::elements, m, n, 2>::kThreads), \
                 blocks) {                                                                                                  \
    GemmFma<GemmLoader::elements, m, n, 2>::run(record);                                                                    \
  }
GEMM_FMA(128, 128, 3, 1)
GEMM_FMA(64, 64, 4, 3)
GEMM_FMA(128, 32, 4, 3)
SPARKLE_KERNEL(sparkle_gemm_fma_128x128_in_turn_f32, GemmRecord, (GemmFma<GemmLoader::chunks, 128, 128, 1>::kThreads), 1) {
  GemmFma<GemmLoader::chunks, 128, 128, 1>::run(record);
}
