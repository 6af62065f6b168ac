// Moves of data as devices with wide loads see them: axes merged where every operand passes from one to the next without a
// jump, and elements taken together in chunks of up to 16 bytes that all operands keep whole and aligned.
#pragma once

#include <array>
#include <vector>

#include "base/tensor.h"

namespace sparkle {

// One axis of a move. Strides of x, of y, and of a third operand that steers the move: bytes for x and y at first, chunks
// later.
struct ChunkAxis {
  int64_t size = 1;
  int64_t x = 0, y = 0, other = 0;
  int axis = -1;  // y's axis that it is where it must stay alone: x's place along it comes from a table; -1: it may be merged
  int64_t order = 0;  // by how much the row-major number of the third operand's element grows along it
};

struct ChunkMove {
  int64_t bytes = 1;            // of a chunk: 1, 2, 4, 8 or 16
  std::vector<ChunkAxis> axes;  // outermost first in y's memory, none of size 1
  int64_t count() const;        // of chunks that are written
  bool fits_31_bits() const;    // all places, of all operands, counted from the lowest one
  // Where the lowest chunk of x (of y) lies from element (0,...,0), in chunks: 0 or less.
  int64_t lowest_x() const, lowest_y() const;
};

// `element`: bytes; `x_offset`, `y_offset`: of element (0,...,0) from where memory is aligned, in bytes; `widest`: bytes of a
// chunk, at most: 16 are what a thread loads at once.
ChunkMove chunk_move(std::vector<ChunkAxis> axes, int64_t element, int64_t x_offset, int64_t y_offset, int64_t widest = 16);
// A copy between two layouts of one shape.
ChunkMove chunk_move(const TensorDesc& x, const TensorDesc& y);

// A move that takes lines along one axis of x and leaves them along another one of y: the axes' places, or -1.
struct Transposition {
  int a = -1;  // neighbours in x
  int b = -1;  // neighbours in y
  bool found() const { return a >= 0 && b >= 0 && a != b; }
};
Transposition transposition(const ChunkMove& move);

// Whether four neighbouring channels of a feature map are one aligned vector wherever they begin.
bool channels_in_vec4(const TensorDesc& desc);

}  // namespace sparkle
