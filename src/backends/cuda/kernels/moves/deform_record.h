// What sparkle_deform_* are launched with: a block makes kDeformPixels pixels of kDeformFilters filters of one group.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kDeformThreads = 64, kDeformPixels = 16, kDeformFilters = 64, kDeformSlab = 16;
// Shared memory: a slab of samples by pixels, one of filters; rows of k begin at multiples of 16 bytes.
inline constexpr int kDeformSampleRow = 4 * (kDeformPixels + 4), kDeformFilterRow = 4 * (kDeformFilters + 4);
inline constexpr int kDeformSharedBytes = kDeformSlab * (kDeformSampleRow + kDeformFilterRow);

struct DeformRecord {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* offset = nullptr;
  const void* bias = nullptr;  // nullptr: none
  const void* mask = nullptr;  // nullptr: none
  void* y = nullptr;
  int32_t pixels = 0, depth = 0, inner = 0, outer = 0;  // depth: channels of a group by taps, channels innermost
  int32_t height = 0, width = 0, taps = 0;
  Divisor columns, rows;  // of y
  Divisor channels, filter_columns, offset_channels, filter_tiles, groups;
  int32_t stride[2] = {1, 1}, dilation[2] = {1, 1}, pad[2] = {};
  int32_t x_strides[4] = {}, w_strides[4] = {}, offset_strides[4] = {}, mask_strides[4] = {}, y_strides[4] = {};
  int32_t bias_stride = 0;
};

}  // namespace sparkle::cuda
