// Operands with a number per channel (scale, bias) in whole vectors: what kernels that finish vectors of channels read.
#pragma once

#include <algorithm>

#include "base/tensor.h"

namespace sparkle::cpu {

// to[group][i] = values[channel] * factor for the group's n channels, the last one repeated up to padded_n; `factor` where
// there are no values. `values` is element 0 of the 1-D tensor `desc`.
inline void pad_channels(const TensorDesc* desc, const float* values, float factor, int64_t groups, int64_t n, int64_t padded_n,
                         float* to) {
  const int last = values ? desc->shape.size() - 1 : -1;
  const int64_t stride = last < 0 || desc->shape[last] == 1 ? 0 : desc->layout.strides[last];
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < padded_n; ++i) *to++ = values ? values[(g * n + std::min(i, n - 1)) * stride] * factor : factor;
}

}  // namespace sparkle::cpu
