// What sparkle_sample_positions is launched with: x read at positions that are data (families/sample/sample_gpu.h).
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kSampleThreads = 64, kSampleAxes = 5;
// mode and padding, as families/sample/sample.h numbers them.
inline constexpr int kSampleNearest = 0, kSampleLinear = 1, kSampleZeros = 0, kSampleBorder = 1, kSampleReflection = 2;

struct SampleRecord {
  const void* x = nullptr;
  const void* grid = nullptr;
  void* y = nullptr;
  uint32_t count = 0;
  int32_t rank = 0, channel_axis = -1, channels = 0, groups = 1;
  Divisor size[kSampleAxes];  // of the output, innermost first, channels in groups
  int32_t x_strides[kSampleAxes] = {}, grid_strides[kSampleAxes] = {}, y_strides[kSampleAxes] = {};
  int64_t next_x = 0, next_y = 0, next_coordinate = 0;  // between the channels of a thread, between coordinates
  int32_t elements[3] = {}, strides[3] = {};            // of x's spatial axes, the innermost last
  uint8_t mode = 0, padding = 0, align_corners = 0, spatial = 2;
  uint8_t type[3] = {};  // of x, grid, y
};

}  // namespace sparkle::cuda
