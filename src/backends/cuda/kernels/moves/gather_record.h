// What sparkle_gather_chunks_BYTES is launched with: chunks of x picked by indices (families/gather/picking.h). Strides of x
// and y count chunks, those of indices count indices.
#pragma once

#include "backends/cuda/kernels/moves/copy_record.h"

namespace sparkle::cuda {

struct GatherRecord {
  const void* x = nullptr;
  const void* indices = nullptr;
  void* y = nullptr;
  uint32_t* report = nullptr;  // sparkle::BoundsReports
  uint32_t count = 0;
  MoveAxes axes;
  int32_t index[kMoveAxes] = {}, order[kMoveAxes] = {};
  int32_t picked = 1, tuple_stride = 0;
  int32_t picked_size[kMoveAxes] = {}, picked_strides[kMoveAxes] = {};
  int32_t is_long = 0;  // indices of 64 bits
  int32_t moves = 1;    // 0: x or y is empty, and indices are looked at all the same
};

}  // namespace sparkle::cuda
