// The loops of direct convolutions, one set per math unit: laying an input row into the scratch, and the sums of some tiles of
// a row of outputs with pixels or maps in the lanes.
#pragma once

#include <cstdint>
#include <string_view>

#include "families/direct/direct.h"

namespace sparkle::cpu {

// Longest register tiles of any unit.
inline constexpr int kMostPixelMaps = 4, kMostPixelVectors = 10;  // pixels in the lanes
inline constexpr int kMostMapVectors = 4, kMostMapPixels = 24;    // maps in the lanes
inline constexpr int kMostSlidePixels = 17;                       // one vector of maps
inline constexpr int kSlideTaps[] = {3, 5, 7};                    // of a filter row

// An input row from the image into the scratch. Columns [0, before) and behind before + columns lie outside of the image:
// zeros.
struct DirectInputCall {
  const float* x;  // the first column inside
  int64_t x_pixel, x_channel;
  int64_t channels, stride;
  int64_t before, columns;
  int64_t ahead;  // floats from here to what will be laid next
  DirectRow row;  // where it goes (direct_row)
  float* to;
};

// Steps: the taps of all channels (slide: the first tap of each row and channel) that lie inside of the image.
struct DirectCall {
  const float* x;
  const int64_t* steps;  // of each step, from x to the input of the first output
  int64_t step_count;
  const float* weights;  // pixels: [step][map]; slide: [step][tap][lane]; maps: [step][map]
  int64_t tiles;         // in this call, next to each other
  int64_t x_tile;        // floats of input between tiles
  int64_t x_pixel;       // floats of input between outputs; slide: between columns
  const float* fetch;    // maps: what a tile fetches into the L2 of the inputs of the next row of outputs
  int64_t fetch_lines;   // of cache, a tile
  // -- outputs
  float* y;
  int64_t y_pixel;  // floats between outputs
  int64_t outputs;  // pixels: in all tiles of the call, the last vector may have fewer than its lanes
  int64_t lanes;    // maps, slide: of the last vector that are maps
  bool clamp_below, clamp_above;
  float low, high;
  const float* bias;  // of the first map
};
using DirectKernel = void (*)(const DirectCall& call);

// Tiles up to the lengths of most_direct_pixels() (families/direct).
struct DirectKernels {
  int64_t lanes = 0;
  int map_vectors = 0;                                          // widest block of maps
  DirectKernel pixels[kMostPixelMaps][kMostPixelVectors] = {};  // [maps - 1][vectors - 1]
  DirectKernel maps[kMostMapVectors][kMostMapPixels] = {};      // [vectors - 1][pixels - 1]
  DirectKernel slide[3][kMostSlidePixels] = {};                 // [taps][pixels - 1]
  void (*lay_planes)(const DirectInputCall& call) = nullptr;
  void (*lay_row)(const DirectInputCall& call) = nullptr;
};
// Each enters its kernels; nullptr where this build has none for the unit.
using DirectFill = void (*)(DirectKernels& kernels);
DirectFill direct_pixels_of(std::string_view unit);
DirectFill direct_maps_of(std::string_view unit);
DirectFill direct_slide_of(std::string_view unit);
// The kernels of a math unit, or nullptr where this build has none.
const DirectKernels* direct_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
