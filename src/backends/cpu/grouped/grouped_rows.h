// The loops of grouped convolutions, one set per math unit: a row of inputs on its way into the ring, spread over the lanes of
// its groups or as it is, and the sums of some outputs of a row.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

inline constexpr int kMostGroupedPixels = 12;
inline constexpr int kMostGroupedRows = 16;  // of a filter

// Columns [0, before) and [before + columns, before + columns + after) lie outside of the image: zeros.
struct SpreadCall {
  const float* x;  // the first channel of the block in the first column inside
  int64_t x_stride;
  int64_t ahead;     // floats to the row that will be spread next: its lines lie too far apart for the hardware to foresee
  int64_t channels;  // of the block that exist
  int64_t depth;     // channels of a group
  int64_t before, columns, after;
  float* to;  // [column][channel of the group][lane], as they are: [column][lane]
};

struct GroupedCall {
  const float* x[kMostGroupedRows];        // row of the ring, at the first output's first tap
  const float* weights[kMostGroupedRows];  // of the row: [tap][channel of the group][lane]
  int rows;                                // of the filter that lie inside of the image
  int64_t taps, depth;                     // of a row; channels of a group
  int64_t x_pixel, x_tap;                  // floats between outputs and between taps
  const int32_t* lanes;                    // permute: [channel of the group][lane]: the lane that it comes from
  float* y;
  int64_t y_stride;
  bool finish;  // bias and bounds; false: sums as they are
  bool clamp_below, clamp_above;
  float low, high;
  const float* bias;  // of the block
};

struct GroupedKernels {
  int64_t lanes = 0;
  void (*spread)(const SpreadCall& call) = nullptr;
  void (*copy)(const SpreadCall& call) = nullptr;
  void (*sums[kMostGroupedPixels])(const GroupedCall& call) = {};      // [outputs - 1]
  void (*permuted[kMostGroupedPixels])(const GroupedCall& call) = {};  // of rows as they are
  int most_permuted = 0;                                               // outputs of a tile of those
};
// The kernels of a math unit, or nullptr where this build has none.
const GroupedKernels* grouped_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
