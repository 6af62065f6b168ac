// The transforms of the winograd family, one set per math unit and tile size: weights once, inputs and outputs tile by tile.
// A tile has (tile + 2)^2 points; what belongs to one point of all tiles is one operand of a matrix product.
#pragma once

#include <cstdint>
#include <string_view>

#include "families/winograd/winograd.h"

namespace sparkle::cpu {

inline constexpr int kMostTilePoints = kMostWinogradPoints * kMostWinogradPoints;

// All channels of a tile's inputs to its points: to[point * point_stride + c].
struct TileInputCall {
  const float* const* pixels;  // points: where each input pixel's channels lie; zeros for those outside of the image
  int64_t channels;            // whole vectors are written, zeros beyond
  float* to;
  int64_t point_stride;
};

// The products of a panel at a tile's points to its outputs, and the common epilogues.
struct TileOutputCall {
  const float* products;  // products[point * point_stride + column]
  int64_t point_stride;
  int vectors;            // columns of the panel
  int64_t rows, columns;  // outputs of the tile that exist
  float* y;
  int64_t y_row, y_column;  // strides
  bool finish;              // false: sums are stored as they are
  const float* scale;       // per column; nullptr: 1
  const float* bias;        // per column
  int residuals;
  const float* residual[2];
  int64_t residual_row[2], residual_column[2];
  bool clamp_below, clamp_above;
  float low, high;
};

// The weights of a panel of filters at all points.
struct FilterCall {
  const float* weights;  // of the panel's first filter
  int64_t filter_stride, channel_stride, row_stride, tap_stride;
  int64_t filters, width;  // filters that exist; columns of the panel, zeros where there is no filter
  int64_t channels;
  float* to;  // [point][channel][width]
};

struct WinogradKernels {
  int64_t lanes = 0;
  void (*filter)(const WinogradTransform& transform, const FilterCall& call) = nullptr;
  void (*input[3])(const TileInputCall& call) = {};  // tile 2, 4, 6
  void (*output[3])(const TileOutputCall& call) = {};
};
// The kernels of a math unit, or nullptr where this build has none.
const WinogradKernels* winograd_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
