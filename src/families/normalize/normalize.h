// The normalize family: (x - mean) / sqrt(variance + epsilon) over `axes`, then scale and bias. Instance, layer and group
// normalisation are this with different axes (a group is a view with the channel axis split in two).
// Operands: x, then scale and bias if present, both with x's rank and broadcast by pitch 0 -> y like x.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct NormalizeParams {
  Dims axes;
  double epsilon = 1e-5;
  bool center = true;  // false: root-mean-square normalisation, no mean is taken off
  bool scale = true, bias = true;

  template <class V>
  void visit(V& v) {
    v("axes", axes), v("epsilon", epsilon), v("center", center), v("scale", scale), v("bias", bias);
  }
  friend bool operator==(const NormalizeParams&, const NormalizeParams&) = default;
};

}  // namespace sparkle
