// The loops of inverted blocks, one set per math unit. The wide plane lies in rows of vectors: [vector of
// channels][column][lane], so that one vector's columns follow each other; columns outside of the image are zeros that nobody
// writes.
#pragma once

#include <cstdint>
#include <string_view>

#include "families/values/epilogue.h"

namespace sparkle::cpu {

inline constexpr int kMaxWideVectors = 4;

// relu, clip or nothing on the way out of registers.
struct Bounds {
  bool below = false, above = false;
  float low = 0, high = 0;
};

// A row of the input and where its wide pixels go (the first vector's).
struct WideRow {
  const float* x;
  float* y;
};

// All pixels of some rows through the 1x1 expansion, a panel of up to kMaxWideVectors vectors of channels.
struct ExpandCall {
  const WideRow* rows;
  int64_t row_count, columns;
  int64_t y_offset;       // of the panel's first vector in a wide row
  int64_t x_stride;       // floats between pixels
  int64_t vector_stride;  // floats between the vectors of a wide row
  int64_t channels;       // of the input
  const float* weights;   // [channel][vectors of the panel]
  const float* bias;      // of the panel
  Bounds bounds;
  const char* prefetch;   // weights of the next panel, a share per tile; must be mapped memory
  int64_t prefetch_step;  // bytes per channel
};

// The same rows as they are: x is the wide plane. One vector, of which `channels` lanes exist.
struct SpreadRowsCall {
  const WideRow* rows;
  int64_t row_count, columns;
  int64_t x_offset, y_offset;  // of the vector in a pixel and in a wide row
  int64_t x_stride;
  int64_t channels;
};

// Rows of the depthwise convolution for one vector of channels.
struct DeepCall {
  const float* const* rows;  // wide rows from the first one that the first output row reaches
  int64_t row_count;         // of the output
  int64_t columns;           // of the output
  int most_columns;          // of a tile
  const float* weights;      // [tap][lane]
  const float* bias;
  Bounds bounds;
  float* y;
  int64_t y_row, y_column;
  // Two rows of the output side by side: [pixel][channel in pair order][row of the pair]; y_row is the stride of pairs.
  bool pairs;
};

// Interleaving parts of 128 bits puts the channels of a vector in this order.
inline int64_t channel_in_pairs(int64_t position, int64_t lanes) {
  const int64_t half = lanes / 2, i = position % half;
  return i / 2 * 4 + i % 2 + (position < half ? 0 : 2);
}

// Sums of the projection where the last vector of filters is at most half full and serves two pixels, one of each row: a third
// or a fifth fewer vectors (24 or 40 filters with 16 lanes).
inline constexpr int kMostPairs = 8, kMostPairVectors = 2;
struct PairsCall {
  const float* a;  // pairs of pixels: [channel in pair order][row]
  int64_t stride;  // between them
  int64_t pairs;
  int64_t channels;
  const float* weights;  // [channel in pair order][full vectors, the last vector with each filter twice]
  float* sums;           // rows of full vectors + 1: the pixel of the first row, of the second, next pair
};

struct InvertedKernels {
  int64_t lanes = 0;
  void (*expand[kMaxWideVectors])(const ExpandCall& call) = {};  // [vectors - 1]
  void (*spread)(const SpreadRowsCall& call) = nullptr;
  void (*deep[2][2])(const DeepCall& call) = {};                // [filter 3 or 5][stride - 1]
  void (*pairs[kMostPairVectors])(const PairsCall& call) = {};  // [full vectors - 1]; nullptr: too few registers
  void (*activate)(Activation activation, float a, float b, float* values, size_t count) = nullptr;
};
// The kernels of a math unit, or nullptr where this build has none.
const InvertedKernels* inverted_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
