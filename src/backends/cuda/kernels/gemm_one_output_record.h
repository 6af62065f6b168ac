// What the product of an output a thread is launched with.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kOneOutputThreads = 256;

struct GemmOneOutputRecord {
  GemmRecord gemm;            // w_instance in elements of w as it comes; w_stride, tiles and splits are not read
  int32_t w_strides[5] = {};  // of w: filters, taps along d,h,w, channels
  int32_t channels = 1;       // of a filter
  uint32_t count = 0;         // outputs of all instances
  Divisor n_by, m_by;
};

}  // namespace sparkle::cuda
