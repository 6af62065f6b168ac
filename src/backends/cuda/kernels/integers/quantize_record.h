// What the kernels of the quantize family are launched with. Operands that a kind does not have are null.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kQuantizeThreads = 128, kQuantizeAxes = 6;
// Operands with strides of their own. Behind them are single values: scale and zero point of b and of y.
enum QuantizeOperand { kQuantizeX, kQuantizeY, kQuantizeScale, kQuantizeZero, kQuantizeB, kQuantizeOperands };

struct QuantizeRecord {
  const void* x = nullptr;
  void* y = nullptr;
  const void* scale = nullptr;
  const void* zero = nullptr;
  const void* b = nullptr;
  const void* b_scale = nullptr;
  const void* b_zero = nullptr;
  const void* y_scale = nullptr;
  const void* y_zero = nullptr;
  uint32_t count = 0;  // of threads' worth of elements: of one, or of four that are neighbours in x, y and b
  int32_t rank = 0;    // of axes, the innermost last
  Divisor size[kQuantizeAxes];
  int32_t strides[kQuantizeOperands][kQuantizeAxes] = {};  // as threads count along the innermost axis
  int32_t beside[2] = {};                                  // scale and zero: from one of the four elements to the next
  int32_t low = 0, high = 0;                               // of y
  uint8_t kind = 0;                                        // the number of QuantizeKind
  uint8_t real = 0;                                        // types: of reals
  uint8_t x_type = 0, zero_type = 0, b_type = 0, y_type = 0;
};

// sparkle_quantize_average: a block for kAverageChannels channels, kAverageSlices threads each; block_y counts images.
inline constexpr int kAverageChannels = 32, kAverageSlices = 8;
struct AverageRecord {
  const void* x = nullptr;
  void* y = nullptr;
  const float* scale = nullptr;
  const void* zero = nullptr;
  const float* y_scale = nullptr;
  const void* y_zero = nullptr;
  int32_t channels = 0, pixels = 0;
  Divisor h, w;
  int32_t x_strides[4] = {}, x_channel = 1;  // along n,d,h,w
  int32_t y_image = 0, y_channel = 1;
  int32_t low = 0, high = 0;
  uint8_t x_type = 0, y_type = 0;
};

// sparkle_quantize_range: least and largest of x and zero, a pair a block; sparkle_quantize_range_end: of these pairs scale and
// zero point of a tensor that is quantised by its own range.
inline constexpr int kRangeThreads = 256, kRangeBlocks = 64;
struct RangeRecord {
  const float* x = nullptr;
  float* pairs = nullptr;
  float* scale = nullptr;
  uint8_t* zero = nullptr;
  uint32_t count = 0;
  int32_t blocks = 0, rank = 0;
  Divisor size[kQuantizeAxes];
  int32_t strides[kQuantizeAxes] = {};
};

}  // namespace sparkle::cuda
