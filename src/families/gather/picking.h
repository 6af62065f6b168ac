// A gather as one move of chunks, for kernels that take a chunk a thread: each axis of y moves along x, along the indices, or
// both, and the indices found there move along the axes of x that they point into.
#pragma once

#include "families/loops/chunk_move.h"
#include "families/stage.h"

namespace sparkle {

struct Picking {
  ChunkMove move;                 // y's axes; ChunkAxis::other steps through the indices, `order` through their numbers
  std::vector<ChunkAxis> picked;  // axes of x that indices point into: size, and stride in chunks
  int64_t tuple_stride = 0;       // from one index of a tuple to the next
  bool moves = true;              // false: x or y is empty, and indices are looked at all the same
  int64_t lowest_x = 0, lowest_index = 0;  // where the lowest chunk and index lie from element (0,...,0): 0 or less
  bool fits_31_bits = true;
};
Picking picking_of(const Stage& stage);

// What the reference says of an index outside of its axis: its number in row-major order, and its value.
Error picked_outside(const Stage& stage, int64_t number, int64_t value);

}  // namespace sparkle
