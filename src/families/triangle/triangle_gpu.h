// How GPUs take triangles: as moves of chunks whose third stride leads to the side of the diagonal that is kept.
#pragma once

#include "families/loops/chunk_move.h"
#include "families/stage.h"

namespace sparkle {

struct TriangleMove {
  ChunkMove chunks;
  int64_t least = 0;  // chunks at least as far to the side stay
  bool fits_31_bits = true;
};

TriangleMove triangle_move(const Stage& stage);

}  // namespace sparkle
