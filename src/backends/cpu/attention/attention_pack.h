// Keys and values in panels for the micro-kernel of the gemm family: keys transposed, [panel][depth][keys of the panel], values
// [panel][keys][columns of the panel]; what fills up the last vector is zero.
#pragma once

#include <algorithm>

#include "base/system/executor.h"
#include "families/stage.h"

namespace sparkle::cpu {

// How `count` columns lie in panels.
struct Panels {
  int64_t count = 0, lanes = 1, width = 1;  // width: of a whole panel, in floats

  int64_t panels() const { return (count + width - 1) / width; }
  int64_t padded() const { return (count + lanes - 1) / lanes * lanes; }
  int64_t width_of(int64_t panel) const { return std::min(width, padded() - panel * width); }
  int64_t columns_of(int64_t panel) const { return std::min(width, count - panel * width); }
};

// One matrix [rows, columns] of any strides; rows follow each other in a panel.
struct PackedMatrix {
  Panels panels;
  int64_t rows = 0, row_stride = 0, column_stride = 0;

  int64_t floats() const { return panels.padded() * rows; }
  const float* panel(const float* packed, int64_t index) const { return packed + index * panels.width * rows; }
};
void pack_panel(const PackedMatrix& matrix, const float* from, int64_t panel, float* packed);

}  // namespace sparkle::cpu
