// The scan family: running sums along an axis. y[i] is the sum of x up to and with i, without it where exclusive; from the end
// where reverse. Integers wrap around, floats are summed in double precision. Operands: x -> y, same type and shape.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct ScanParams {
  int axis = 0;
  bool exclusive = false;
  bool reverse = false;

  template <class V>
  void visit(V& v) {
    v("axis", axis), v("exclusive", exclusive), v("reverse", reverse);
  }
  friend bool operator==(const ScanParams&, const ScanParams&) = default;
};

}  // namespace sparkle
