// The rotary family: pairs of elements of each row turned by an angle per position (rotary position embedding).
// With r = 2h the number of elements that turn: pairs are (i, i + h), or neighbours (2i, 2i + 1) where interleaved; elements
// from r on stay. Operands: x [batch..., k], cosine and sine [batch..., h] broadcast by stride 0 -> y like x.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct RotaryParams {
  bool interleaved = false;

  template <class V>
  void visit(V& v) {
    v("interleaved", interleaved);
  }
  friend bool operator==(const RotaryParams&, const RotaryParams&) = default;
};

}  // namespace sparkle
