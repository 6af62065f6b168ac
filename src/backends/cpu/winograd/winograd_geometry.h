// A winograd stage cut for the CPU: tiles of the output in strips, filters in panels, and the memory that a strip needs.
#pragma once

#include <vector>

#include "base/result.h"
#include "families/stage.h"
#include "families/winograd/winograd.h"

namespace sparkle::cpu {

struct WinogradPanel {
  int64_t column = 0, columns = 0;  // the first filter, and how many exist
  int vectors = 0;
};

struct WinogradGeometry {
  FeatureMap x, y, w;
  int tile = 0, points = 0;  // outputs and points of a tile along one axis
  int64_t pad_h = 0, pad_w = 0;
  int64_t tiles_h = 0, tiles_w = 0, tiles = 0;  // of an image; of all of them
  int64_t strips = 0, strip = 0;                // strips of at most `strip` tiles
  std::vector<WinogradPanel> panels;
  int64_t padded_c = 0, padded_k = 0;  // rounded up to vectors
  // Floats between the points of a strip's inputs and products. A line more than they need: at powers of two all points of a
  // tile would fall into one set of the L1.
  int64_t input_stride = 0, product_stride = 0;
  int64_t scratch_floats = 0;  // of one strip

  int64_t square() const { return int64_t{points} * points; }
  int64_t packed_floats() const { return square() * x.c * padded_k; }
  // Where the weights of a panel lie: [point][channel][vectors of the panel].
  int64_t packed_at(const WinogradPanel& panel) const { return square() * x.c * panel.column; }
  int64_t first_tile(int64_t strip_index) const { return strip_index * tiles / strips; }
};

// Errors: layout_not_served.
Result<WinogradGeometry> winograd_geometry(const Stage& stage, const WinogradSchedule& schedule, int64_t lanes);

}  // namespace sparkle::cpu
