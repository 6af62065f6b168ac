// The two loops of grouped convolutions, one set per math unit: spreading a row of inputs over the lanes of their groups, and
// the sums of some outputs of a row.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

inline constexpr int kMostGroupedPixels = 12;
inline constexpr int kMostGroupedRows = 16;  // of a filter

// Columns [0, before) and [before + columns, before + columns + after) lie outside of the image: zeros.
struct SpreadCall {
  const float* x;  // the first channel of the block in the first column inside
  int64_t x_pitch;
  int64_t ahead;     // floats to the row that will be spread next: its lines lie too far apart for the hardware to foresee
  int64_t channels;  // of the block that exist
  int64_t depth;     // channels of a group
  int64_t before, columns, after;
  float* to;  // [column][channel of the group][lane]
};

struct GroupedCall {
  const float* x[kMostGroupedRows];        // spread row, at the first output's first tap
  const float* weights[kMostGroupedRows];  // of the row: [tap][channel of the group][lane]
  int rows;                                // of the filter that lie inside of the image
  int64_t taps, depth;                     // of a row; channels of a group
  int64_t x_pixel, x_tap;                  // floats between outputs and between taps
  float* y;
  int64_t y_pitch;
  bool finish;  // bias and bounds; false: sums as they are
  bool clamp_below, clamp_above;
  float low, high;
  const float* bias;  // of the block
};

struct GroupedKernels {
  int64_t lanes = 0;
  void (*spread)(const SpreadCall& call) = nullptr;
  void (*sums[kMostGroupedPixels])(const GroupedCall& call) = {};  // [outputs - 1]
};
// The kernels of a math unit, or nullptr where this build has none.
const GroupedKernels* grouped_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
