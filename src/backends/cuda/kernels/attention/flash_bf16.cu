// Attention in blocks of queries on bfloat16: a kernel for each size of flash_tiles.h.
#include "backends/cuda/kernels/attention/flash.cuh"

using namespace sparkle::cuda;

#define FLASH(queries, size, wide, blocks)                                                \
  SPARKLE_KERNEL(sparkle_flash_##queries##x##size##_bf16, AttentionRecord, 128, blocks) { \
    Flash<Operand::bf16, size, wide>::run(record);                                        \
  }
#include "backends/cuda/kernels/attention/flash_variants.inc"
