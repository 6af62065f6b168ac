// The kernels for planes of a few channels: as deep and as wide as families/gemm/cuda/cuda_few.h lists them.
#include "backends/cuda/kernels/gemm_few.cuh"

using namespace sparkle::cuda;

#define GEMM_FEW(steps, tiles, blocks)                                                 \
  SPARKLE_KERNEL(sparkle_gemm_few_##steps##x##tiles, FewRecord, kFewThreads, blocks) { \
    FewPairs<steps, tiles>::run(record);                                               \
  }
GEMM_FEW(2, 1, 8)
GEMM_FEW(4, 1, 8)
GEMM_FEW(8, 1, 6)
GEMM_FEW(14, 1, 5)
GEMM_FEW(2, 2, 8)
GEMM_FEW(4, 2, 6)
GEMM_FEW(8, 2, 5)
GEMM_FEW(14, 2, 4)
GEMM_FEW(2, 4, 6)
GEMM_FEW(4, 4, 5)
GEMM_FEW(8, 4, 4)
GEMM_FEW(14, 4, 3)

// Of filters with so many rows on one channel.
#define GEMM_FEW_ROWS(rows, tiles, blocks)                                                 \
  SPARKLE_KERNEL(sparkle_gemm_few_rows_##rows##x##tiles, FewRecord, kFewThreads, blocks) { \
    FewRows<rows, tiles>::run(record);                                                     \
  }
GEMM_FEW_ROWS(3, 1, 8)
GEMM_FEW_ROWS(5, 1, 6)
GEMM_FEW_ROWS(7, 1, 6)
GEMM_FEW_ROWS(3, 2, 6)
GEMM_FEW_ROWS(5, 2, 5)
GEMM_FEW_ROWS(7, 2, 4)
GEMM_FEW_ROWS(3, 4, 4)
GEMM_FEW_ROWS(5, 4, 3)
GEMM_FEW_ROWS(7, 4, 3)
