// An fft stage cut for the CPU: tiles, what the lanes of a vector hold, and the memory of transformed lines.
// Filters of one row are transformed along the width alone; two tiles are then one transform, as its real and its imaginary
// part, which a real filter leaves apart. Higher filters take two axes: pairs of rows are transformed as one and parted, and
// the lines of equal frequency, half of them, along the height.
#pragma once

#include "backends/cpu/fft/fft_lines.h"
#include "base/system/executor.h"
#include "base/result.h"
#include "families/fft/fft.h"
#include "families/fft/fft_axis.h"

namespace sparkle::cpu {

// Slots that go through together.
inline constexpr int64_t kMostStrip = 16;

struct FftGeometry {
  FeatureMap x, y, w;
  FftAxis height, width;
  bool flat = false;    // no transform along the height
  bool tiled = false;   // lanes are tiles, not channels
  bool single = false;  // lanes are channels with a filter each: products without sums
  int64_t lanes = 1;
  int64_t groups = 1, depth = 1, filters = 1;    // channels and filters of a group
  int64_t in_slots = 1, out_slots = 1;           // vectors (tiled: channels) of a group's channels and filters
  int64_t parts = 1;                             // transformed groups: those of the stage, or vectors of channels if `single`
  int64_t tiles = 1, slot_tiles = 1, slots = 1;  // tiles of all images, tiles that share a vector, and how many such there are
  int64_t strip = 1, strips = 1;                 // slots that go through together
  FftPlan row, line;                             // passes along the width; along a line of transformed points
  int64_t lines = 1, line_points = 1;
  int64_t line_stride = 0, plane_stride = 0;  // floats between lines; between slots
  int64_t scratch_floats = 0, packed_floats = 0;

  struct Place {
    int64_t n = 0, row = 0, column = 0;  // of the image; of its tiles
  };
  Place place(int64_t tile) const {
    const int64_t of_image = height.tiles * width.tiles, rest = tile % of_image;
    return {tile / of_image, rest / width.tiles, rest % width.tiles};
  }
  // Floats of one point's weights of a part, and where the weights of a part and point begin.
  int64_t weights_point() const;
  int64_t packed_at(int64_t part, int64_t line, int64_t point) const {
    return ((part * lines + line) * line_points + point) * weights_point();
  }
};

// Errors: layout_not_served, filter_not_served, groups_not_served.
Result<FftGeometry> fft_geometry(const Stage& stage, const FftSchedule& schedule, const FftKernels& kernels);

// The filters of all parts to `to`, packed_floats() long; values in the order that the products take them in.
void pack_fft_filters(const FftGeometry& g, const float* weights, float* to, Executor& executor);

}  // namespace sparkle::cpu
