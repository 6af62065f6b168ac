// What the stages that move chunks share: axes as kernels read them.
#pragma once

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/kernels/moves/copy_record.h"
#include "families/loops/chunk_move.h"

namespace sparkle::cuda {

inline MoveAxes move_axes(const std::vector<ChunkAxis>& axes) {
  MoveAxes m;
  m.rank = static_cast<int32_t>(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    m.size[i] = divisor_of(axes[i].size);
    m.x[i] = static_cast<int32_t>(axes[i].x);
    m.y[i] = static_cast<int32_t>(axes[i].y);
  }
  return m;
}

// layout_not_served: more than 2^31 elements.
inline Error too_far(std::string_view what) {
  return {Reason::layout_not_served,
          "The CUDA " + std::string(what) + " kernels count in 31 bits, and an operand spans more; split the batch."};
}

}  // namespace sparkle::cuda
