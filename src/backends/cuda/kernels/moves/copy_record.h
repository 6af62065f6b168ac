// What the kernels of copies are launched with. Strides and places count chunks.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"

namespace sparkle::cuda {

inline constexpr int kMoveThreads = 128, kMoveSteps = 4;  // chunks a thread
inline constexpr int kMoveAxes = 8;

struct MoveAxes {
  int32_t rank = 0;
  Divisor size[kMoveAxes];
  int32_t x[kMoveAxes] = {}, y[kMoveAxes] = {};
};

// sparkle_copy_chunks_BYTES: any number of blocks of kMoveThreads.
struct CopyRecord {
  const void* x = nullptr;
  void* y = nullptr;
  uint32_t count = 0;
  MoveAxes axes;
};

// sparkle_copy_transpose_BYTES: a block a tile; a is the axis of neighbours in x, b that of neighbours in y, `axes` the others.
inline constexpr int kTransposeTile = 32, kTransposeThreads = 256;
struct TransposeRecord {
  const void* x = nullptr;
  void* y = nullptr;
  int32_t size_a = 0, size_b = 0, stride_y = 0, stride_x = 0;  // of a in y, of b in x
  Divisor tiles_a, tiles_b;                                    // along a first, then along b, then the outer axes
  MoveAxes axes;
};

// sparkle_indexed_chunks_BYTES: the same where places in x come from tables along some axes; kNowhere is filled with `value`.
inline constexpr int32_t kNowhere = INT32_MIN;
struct IndexedRecord {
  const void* x = nullptr;
  void* y = nullptr;
  const int32_t* table = nullptr;
  uint32_t count = 0;
  MoveAxes axes;
  int32_t start[kMoveAxes] = {};  // of the axis in the table; -1: it has none
  uint64_t value[2] = {};         // a chunk
};

// sparkle_resize_taps: elements made of several along up to kTapAxes axes, by tables of places and weights.
inline constexpr int kTapAxes = 3;
struct TapsRecord {
  const void* x = nullptr;
  void* y = nullptr;
  const int32_t* places = nullptr;  // [start + at * taps + tap]; kNowhere: outside
  const float* weights = nullptr;
  uint32_t count = 0;
  MoveAxes axes;
  int32_t slot[kMoveAxes] = {};  // of the axis among those with taps; -1: it has none
  int32_t start[kTapAxes] = {}, taps[kTapAxes] = {1, 1, 1};
  float outside = 0;
  uint8_t type = 0;
};

}  // namespace sparkle::cuda
