// What the fft family computes on vectors, one set per math unit: transforms of lines, products of frequencies, the way of
// channels in and out. A complex value is two vectors next to each other, real parts and imaginary parts; every lane carries
// an independent transform, so that nothing ever moves from lane to lane. Transformed lines are in the order that their passes
// leave them in (FftPlan::place).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sparkle::cpu {

// A transform in passes: each splits blocks of radix * step points into `radix` blocks of `step` points.
struct FftPass {
  int radix = 2;
  int64_t step = 1;
  int64_t twiddles = 0;  // where its factors begin: [point of a block, from 1][1 .. radix-1][re, im]
};
struct FftPlan {
  int64_t points = 1;
  std::vector<FftPass> passes;
  std::vector<float> twiddles;
  std::vector<int32_t> place;  // where frequency k lies
};
FftPlan fft_plan(int64_t points, int registers);

// Neighbouring channels of pixels into the real or imaginary parts of points.
struct FftLoadCall {
  const float* x;
  int64_t stride, points, channels;
  float* to;  // the first point's part
};
// Real or imaginary parts of points to neighbouring channels of pixels, with the common epilogues.
struct FftStoreCall {
  const float* from;
  int64_t step;              // floats between the points that are stored
  int64_t pixels, channels;  // scale and bias have whole vectors
  float* y;
  int64_t y_stride;
  const float* scale;  // nullptr: 1
  const float* bias;
  int residuals;
  const float* residual[2];
  int64_t residual_strides[2];
  bool clamp_below, clamp_above;
  float low, high;
};
// Two rows that were transformed as one: row 0 was its real part, row 1 its imaginary part. Frequency k of a row lies at
// lines + k * line_stride, row 1 behind row 0 by `second` floats.
struct FftRowsCall {
  float* row;
  const FftPlan* plan;
  float* lines;
  int64_t line_stride, second;
};
// Sums over channels at `count` frequencies that follow each other.
struct FftProductCall {
  const float* x;
  int64_t x_channel;  // floats between channels (variant tiles) or vectors of channels
  int64_t x_tile;     // floats between tiles of the strip (variant channels)
  float* y;
  int64_t y_filter, y_tile;  // likewise
  const float* weights;
  int64_t depth, filters;  // channels; filters or, for variant channels, vectors of filters
  int64_t tiles, count;
};

struct FftKernels {
  int64_t lanes = 0;
  int registers = 0;
  void (*forward)(const FftPlan& plan, float* x) = nullptr;
  void (*inverse)(const FftPlan& plan, float* x) = nullptr;
  void (*split)(const FftRowsCall& call) = nullptr;  // a transformed row to the lines, doubled
  void (*merge)(const FftRowsCall& call) = nullptr;  // and back, not doubled
  void (*load)(const FftLoadCall& call) = nullptr;
  void (*store)(const FftStoreCall& call) = nullptr;
  // x *= weights, point by point and lane by lane.
  void (*multiply)(float* x, const float* weights, int64_t count) = nullptr;
  // Variant tiles: weights [point][filter][channel][re, im]; a lane is a tile.
  void (*product_tiles)(const FftProductCall& call) = nullptr;
  // Variant channels: weights [point][vector of filters][channel][re, im][lane].
  void (*product_channels)(const FftProductCall& call) = nullptr;
};
// The kernels of a math unit, or nullptr where this build has none.
const FftKernels* fft_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
