// Attention in blocks of queries on fp32: a kernel for each size of flash_tiles.h.
#include "backends/cuda/kernels/attention/flash_fma.cuh"

using namespace sparkle::cuda;

#define FLASH_FMA(size, blocks) \
  SPARKLE_KERNEL(sparkle_flash_fma_##size##_f32, AttentionRecord, 256, blocks) { FlashFma<size>::run(record); }
FLASH_FMA(64, 2)
FLASH_FMA(128, 2)
FLASH_FMA(192, 2)
FLASH_FMA(256, 1)
