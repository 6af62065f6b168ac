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

}  // namespace sparkle
