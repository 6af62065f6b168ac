// The top_k family: the k largest or smallest elements along an axis, best first, and where they were. With k = 1 and indices
// alone it is ArgMax and ArgMin. Of equal elements the one with the lower index is better, unless last_of_equals. NaN is larger
// than every number; with nan_first it is the best in either direction, as ArgMin wants it.
// Operands: x -> values, indices (i64), or -> indices; y has x's shape with k elements along the axis.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct TopKParams {
  int axis = 0;
  int64_t k = 1;
  bool largest = true;
  bool last_of_equals = false;
  bool nan_first = false;

  template <class V>
  void visit(V& v) {
    v("axis", axis), v("k", k), v("largest", largest), v("last_of_equals", last_of_equals), v("nan_first", nan_first);
  }
  friend bool operator==(const TopKParams&, const TopKParams&) = default;
};

}  // namespace sparkle
