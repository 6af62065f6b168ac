// The softmax family: exp(x - max) / sum over a run of neighbouring axes [first_axis, last_axis] (one axis since opset 13,
// all from `axis` on before), or its logarithm. Operands: x -> y of the same shape.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct SoftmaxParams {
  int first_axis = 0, last_axis = 0;
  bool logarithm = false;

  template <class V>
  void visit(V& v) {
    v("first_axis", first_axis), v("last_axis", last_axis), v("log", logarithm);
  }
  friend bool operator==(const SoftmaxParams&, const SoftmaxParams&) = default;
};

}  // namespace sparkle
