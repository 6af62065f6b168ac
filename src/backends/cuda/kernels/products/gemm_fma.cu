// The product on CUDA cores in fp32, in tiles for many filters, for some and for few.
#include "backends/cuda/kernels/gemm_fma.cuh"

using namespace sparkle::cuda;

#define GEMM_FMA(m, n, stages, blocks)                                                                                      \
  SPARKLE_KERNEL(sparkle_gemm_fma_##m##x##n##_f32, GemmRecord, (GemmFma<Operand::f32, GemmLoader::chunks, m, n, stages>::kThreads),       \
                 blocks) {                                                                                                  \
    GemmFma<Operand::f32, GemmLoader::chunks, m, n, stages>::run(record);                                                                 \
  }                                                                                                                         \
  SPARKLE_KERNEL(sparkle_gemm_fma_##m##x##n##_elements_f32, GemmRecord, (GemmFma<Operand::f32, GemmLoader::elements, m, n, 2>::kThreads), \
                 blocks) {                                                                                                  \
    GemmFma<Operand::f32, GemmLoader::elements, m, n, 2>::run(record);                                                                    \
  }
GEMM_FMA(128, 128, 3, 1)
GEMM_FMA(64, 64, 4, 3)
GEMM_FMA(128, 32, 4, 3)
SPARKLE_KERNEL(sparkle_gemm_fma_128x128_in_turn_f32, GemmRecord, (GemmFma<Operand::f32, GemmLoader::chunks, 128, 128, 1>::kThreads), 1) {
  GemmFma<Operand::f32, GemmLoader::chunks, 128, 128, 1>::run(record);
}
#define GEMM_FMA_WIDENED(m, n, type, stages, blocks)                                             \
  SPARKLE_KERNEL(sparkle_gemm_fma_widened_##m##x##n##_##type, GemmRecord,                         \
                 (GemmFma<Operand::type, GemmLoader::chunks, m, n, stages>::kThreads), blocks) {  \
    GemmFma<Operand::type, GemmLoader::chunks, m, n, stages>::run(record);                        \
  }
GEMM_FMA_WIDENED(128, 128, f16, 3, 1)
GEMM_FMA_WIDENED(128, 128, bf16, 3, 1)
GEMM_FMA_WIDENED(64, 64, f16, 4, 3)
GEMM_FMA_WIDENED(64, 64, bf16, 4, 3)
