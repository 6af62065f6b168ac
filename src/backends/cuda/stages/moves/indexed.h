// Moves whose places in x come from tables along some axes: padding, and sampling of the nearest element.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// Where y's index along an axis lies in x.
struct IndexedAxis {
  bool identity = true;
  std::vector<int64_t> index;  // per index of y where it is not the identity; -1: nowhere
};

// One axis for each of y's. `value`: what is stored where an axis leads nowhere.
Result<CudaKernelPtr> make_indexed(const Stage& stage, const Workshop& shop, const std::vector<IndexedAxis>& axes,
                                   double value);

}  // namespace sparkle::cuda
