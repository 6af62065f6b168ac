// What sparkle_triangle_chunks_BYTES is launched with: matrices with zeros on one side of a diagonal. Strides count chunks.
#pragma once

#include "backends/cuda/kernels/moves/copy_record.h"

namespace sparkle::cuda {

struct TriangleRecord {
  const void* x = nullptr;
  void* y = nullptr;
  uint32_t count = 0;
  int32_t least = 0;  // chunks at least as far to the side that is kept stay
  MoveAxes axes;
  int32_t side[kMoveAxes] = {};  // by how much an axis leads there
};

}  // namespace sparkle::cuda
