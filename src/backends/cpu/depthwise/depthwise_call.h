// One run of a depthwise kernel as plain data: what make_depthwise prepares and the loops of depthwise_kernels.cc read.
#pragma once

#include <span>
#include <string_view>

#include "families/depthwise/depthwise.h"
#include "families/windows/taps.h"

namespace sparkle::cpu {

struct DepthwiseResidual {
  const float* data = nullptr;
  FeatureMap map;
};

struct DepthwiseCall {
  const float* x = nullptr;
  float* y = nullptr;
  const float* w = nullptr;      // packed [taps][k_stride], zeros beyond K
  const float* scale = nullptr;  // [K] without gaps, alpha multiplied in; nullptr: 1
  const float* bias = nullptr;   // [K] without gaps; nullptr: 0
  int64_t k_strides = 0;
  FeatureMap mx, my;
  Window window;
  Axis axes[3];
  std::span<const TapRange> columns;  // of axes[2]
  const int32_t* channel = nullptr;   // input channel of each output channel where the multiplier is above 1
  bool clamp = false;                 // relu and clip without residuals happen in registers
  float low = 0, high = 0;
  bool strip = false;  // the rest of the epilogue runs over each tile while it lies in L1
  Activation activation = Activation::none;
  float a = 0, b = 0;
  DepthwiseResidual residuals[2];
  int residuals_before = 0, residuals_after = 0;
  int rows = 1, columns_per_tile = 8;  // register tile
  int64_t block_channels = 0;          // tiles: channels that pass down a column of tiles together
};

// Output rows [begin,end) of the n * d * h rows of y.
using DepthwiseRows = void (*)(const DepthwiseCall& call, int64_t begin, int64_t end);

// The loops compiled for a unit; nullptr where the unit has none. tile serves 3x3, 5x5 and 7x7 at stride 1 and 2.
DepthwiseRows depthwise_tile_rows(std::string_view unit, int64_t filter, int64_t stride);
DepthwiseRows depthwise_window_rows(std::string_view unit);

}  // namespace sparkle::cpu
