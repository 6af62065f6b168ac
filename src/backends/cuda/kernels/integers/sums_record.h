// What kernels are launched with that sum products of 8-bit integers in 32-bit arithmetic, an output or four channels of one a
// thread: families/integers/integers.h.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"
#include "backends/cuda/kernels/windows/window_record.h"

namespace sparkle::cuda {

inline constexpr int kSumsThreads = 128;

// Zero points, and what ends a sum. `scale`: null where y holds the sums themselves.
struct SumsEnd {
  const void* x_zero = nullptr;
  const void* w_zero = nullptr;
  const void* y_zero = nullptr;
  const float* scale = nullptr;
  const int32_t* bias = nullptr;
  int32_t w_zero_stride = 0, scale_stride = 0, bias_stride = 0;  // from filter to filter
  int32_t low = 0, high = 0;                                     // of y
  uint8_t x_type = 0, w_type = 0, y_type = 0;                    // numbers of DType
};

// sparkle_integer_sums: windows in groups and dense products over any layout. Strides of w are those of its layout:
// GemmRecord::w_instance, and between filters, taps along t,r,s, channels.
struct SumsRecord {
  GemmRecord gemm;
  SumsEnd end;
  uint32_t count = 0;  // of outputs
  int32_t instances = 1;
  Divisor n_by, count_by;  // of filters, of instances
  int32_t w_strides[5] = {};
};

// sparkle_integer_depthwise: four channels of an output a thread, channels side by side in x and y. Filters packed:
// [tap][filter] of 16 bits; else as WindowRecord::w_strides say.
struct DepthwiseSumsRecord {
  WindowRecord window;
  SumsEnd end;
  int32_t packed = 0;
};

}  // namespace sparkle::cuda
