// What the kernels that make something of whole rows are launched with: softmax, reductions, normalisations, running sums, the
// best elements. A block has some rows and some threads for each (families/loops/row_groups.h).
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kRowsThreads = 128, kRowsAxes = 8;
inline constexpr int kRowX = 0, kRowScale = 1, kRowBias = 2, kRowY = 3;

struct RowsRecord {
  const void* x = nullptr;
  const void* scale = nullptr;
  const void* bias = nullptr;
  void* y = nullptr;
  void* work = nullptr;  // the workspace
  uint32_t rows = 1, elements = 1;
  uint32_t lanes = 1, depth = 1, lanes_first = 0;  // rows of a block, threads of each: a power of two
  uint32_t parts = 1, part_length = 1;             // of each row, for blocks of their own: y of the grid
  int32_t axes[2] = {};                            // of the rows, of the elements of one; innermost last
  Divisor size[2][kRowsAxes];
  int32_t strides[2][kRowsAxes][4] = {};  // of x, scale, bias, y
  uint8_t type[4] = {};
  uint8_t kind = 0, flags = 0;  // the family's own
  float epsilon = 0;
  uint32_t own[7] = {};  // the family's own
};

}  // namespace sparkle::cuda
