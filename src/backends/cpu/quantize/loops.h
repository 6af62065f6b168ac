// The loops of the quantize family over neighbouring elements, one set per math unit; values as in families/quantize, bit for
// bit.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

// y = x / scale rounded to even within [low, high], plus zero, as 8 bits.
struct Rounding {
  float scale, low, high;
  int32_t zero;
};
struct Linear {
  float scale;
  int32_t zero;
};

// Rounding or Linear of each channel, side by side.
struct Channels {
  const float *scale, *low, *high;
  const int32_t* zero;
  int64_t count;
};

struct QuantizeLoops {
  void (*quantize)(const float* x, int64_t count, const Rounding& r, uint8_t* y);
  // `lines` lines of all channels.
  void (*quantize_lines)(const float* x, int64_t lines, const Channels& channels, uint8_t* y);
  void (*least_and_most)(const float* x, int64_t count, float& least, float& most);
  // [i8 rather than u8]
  void (*dequantize[2])(const uint8_t* x, int64_t count, const Linear& l, float* y);
  void (*dequantize_lines[2])(const uint8_t* x, int64_t lines, const Channels& channels, float* y);
  void (*add[2][2])(const uint8_t* a, const Linear& la, const uint8_t* b, const Linear& lb, int64_t count, const Rounding& r,
                    uint8_t* y);
  // sums[c] += the elements of `pixels` lines of `channels` neighbours.
  void (*sum[2])(const uint8_t* x, int64_t pixels, int64_t stride, int64_t channels, int32_t* sums);
};
const QuantizeLoops& quantize_loops_of(std::string_view unit);

}  // namespace sparkle::cpu
