// The kernels of gemm_variants.inc on bfloat16.
#include "backends/cuda/kernels/gemm_mma.cuh"

using namespace sparkle::cuda;

#define GEMM_KERNEL(name, loader, m, n, k_bytes, warps_m, warps_n, stages, blocks)                    \
  SPARKLE_KERNEL(sparkle_gemm_mma_##m##x##n##name, GemmRecord, 32 * warps_m * warps_n, blocks) {      \
    GemmMma<Operand::bf16, GemmLoader::loader, m, n, k_bytes, warps_m, warps_n, stages>::run(record); \
  }
#define GEMM_TILE(...) GEMM_KERNEL(_bf16, chunks, __VA_ARGS__)
#include "backends/cuda/kernels/gemm_variants.inc"
#undef GEMM_TILE
#define GEMM_TILE(...) GEMM_KERNEL(_elements_bf16, elements, __VA_ARGS__)
#include "backends/cuda/kernels/gemm_element_variants.inc"
GEMM_KERNEL(_in_turn_bf16, chunks, 128, 128, 64, 2, 2, 1, 2)
