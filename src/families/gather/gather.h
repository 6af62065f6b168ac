// The gather family: slices of x along one axis picked by integer indices (negative ones count from the end).
// Operands: x, indices (i32 or i64) -> y with x's axis replaced by the indices' axes.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct GatherParams {
  int axis = 0;

  template <class V>
  void visit(V& v) {
    v("axis", axis);
  }
  friend bool operator==(const GatherParams&, const GatherParams&) = default;
};

// Where an index points along an axis of `size` >= 1: negative ones count from the end. ONNX calls an index outside of
// [-size, size) an error of the data; kernels clamp it to the axis, so that no memory outside of x is ever read.
int64_t gather_index(int64_t index, int64_t size);

}  // namespace sparkle
