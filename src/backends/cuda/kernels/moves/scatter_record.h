// What the kernels of scatters are launched with: updates and where they go (families/scatter/scatter_updates.h).
#pragma once

#include "backends/cuda/kernels/moves/copy_record.h"

namespace sparkle::cuda {

inline constexpr int kScatterThreads = 128;

struct ScatterRecord {
  const void* indices = nullptr;
  const void* updates = nullptr;
  void* y = nullptr;
  uint32_t* claims = nullptr;
  uint32_t* report = nullptr;         // sparkle::BoundsReports
  uint32_t parallel = 1, serial = 1;  // updates
  int32_t rank = 0, serial_rank = 0;  // axes of the updates, serial ones first
  int32_t picked = 0, tuple_stride = 0;
  Divisor size[kMoveAxes];
  int32_t update[kMoveAxes] = {}, to[kMoveAxes] = {}, index[kMoveAxes] = {}, order[kMoveAxes] = {}, slot[kMoveAxes] = {};
  int32_t picked_size[kMoveAxes] = {}, picked_to[kMoveAxes] = {}, picked_slot[kMoveAxes] = {};
  uint8_t is_long = 0;              // indices of 64 bits
  uint8_t type = 0, reduction = 0;  // of the elements; families/scatter/scatter.h
};

// sparkle_one_hot: `on` where the place along an axis is the index, `off` elsewhere. Strides in elements.
struct OneHotRecord {
  const void* indices = nullptr;
  const void* values = nullptr;
  void* y = nullptr;
  uint32_t count = 0;
  MoveAxes axes;                  // x: of the indices
  int32_t place[kMoveAxes] = {};  // 1 along the axis
  int32_t value_stride = 0, axis_size = 0;
  uint8_t type = 0;  // of the indices
};

}  // namespace sparkle::cuda
