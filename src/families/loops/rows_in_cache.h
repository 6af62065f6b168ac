// Rows of outputs that the groups of a convolution pass over one after the other before the next rows come.
#pragma once

#include <algorithm>

#include "device/device.h"
#include "families/stage.h"
#include "families/windows/window.h"

namespace sparkle {

// As many as have their inputs, of all groups, in a quarter of the L2: the groups share lines of x and y, which wait for them
// there. At least four, for each such pass lays the rows above its own again; with several cores at most a quarter of the rows.
inline int64_t group_rows(const FeatureMap& x, const FeatureMap& y, int64_t stride, const Device& device) {
  const MemoryLevel* l2 = device.level("L2");
  const int64_t bytes = l2 && l2->bytes > 0 ? l2->bytes : 256 * 1024, row_bytes = std::max<int64_t>(1, x.w * x.c * 4 * stride);
  const int64_t rows = std::clamp<int64_t>(bytes / 4 / row_bytes, 4, std::max<int64_t>(4, y.h));
  return device.cores > 1 ? std::min(rows, std::max<int64_t>(4, (y.h + 3) / 4)) : rows;
}

}  // namespace sparkle
