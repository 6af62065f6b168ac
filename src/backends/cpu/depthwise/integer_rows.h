// Depthwise stages on 8-bit integers: what one row of output pixels gets, and the kernels per math unit. Channels go by blocks
// of 64 (32 with 256-bit vectors); in a block, sum j of four holds the channels of block_channel(j, lane): four taps of a
// channel lie side by side after bytes are interleaved within 128-bit lanes, and packing the sums again undoes that order.
// Where channels fill one block the last block ends with the last channel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

inline constexpr int64_t kTapGroup = 4;

struct IntegerRowCall {
  // Per output pixel: the input pixel under each tap, taps rounded up to groups of four; those in the padding point at zero
  // points.
  const uint8_t* const* taps;
  int64_t taps_stride;  // between output pixels
  int64_t groups;       // of four taps
  bool single;          // one more tap after them, alone; its weights are those of a group
  int64_t columns;      // output pixels
  int64_t channels;
  uint8_t flip;               // 0x80 where x holds i8: x ^ flip is u8
  const int16_t* weights;     // [block][group][sum j][even taps, odd taps][lane][2]
  const int32_t* correction;  // [block][sum j][lane]
  const float* scale;         // alike; nullptr: sums are stored as they are (i32)
  float low, high;
  int32_t y_zero;
  bool is_signed;    // y holds i8
  std::byte* y;      // first output pixel
  int64_t y_stride;  // bytes between output pixels
};

struct IntegerRowKernel {
  int64_t block = 0;  // channels
  void (*run)(const IntegerRowCall& call) = nullptr;
  int64_t block_channel(int64_t sum, int64_t lane) const { return lane / 4 * 16 + sum * 4 + lane % 4; }
  int64_t first_channel(int64_t index, int64_t channels) const {
    return std::min(index * block, std::max<int64_t>(0, channels - block));
  }
};
// The kernel of a math unit that does least for so many channels, or one without a function where this build has none.
IntegerRowKernel integer_row_kernel_of(std::string_view unit, int64_t channels);

}  // namespace sparkle::cpu
