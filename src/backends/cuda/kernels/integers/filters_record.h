// What sparkle_integer_filters is launched with: filters of bytes that are made at run time become rows as the products on
// Tensor Cores read them, their sums beside them; and the zero point of x becomes 16 bytes of padding. A block a row, at least
// one.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kFiltersThreads = 128;

struct FiltersRecord {
  const void* from = nullptr;
  uint8_t* to = nullptr;
  int32_t* sums = nullptr;  // a row, or of rectangles of taps: [taps_h + 1][taps_w + 1][row]
  const void* x_zero = nullptr;
  uint8_t* padding = nullptr;  // none: it is there already
  uint32_t rows = 0;           // of all matrices; 0: they are there already
  Divisor n_by, matrices[4];   // rows of a matrix, matrices outermost first
  int32_t filter = 0, instance[4] = {};
  Divisor size[4];  // taps along t,r,s, channels
  int32_t strides[4] = {};
  int32_t k = 0, w_stride = 0;
  int32_t taps_h = 0, taps_w = 0;  // 0: all at once
  uint8_t flip = 0;                // 128: bytes are unsigned
};

}  // namespace sparkle::cuda
