// One row of pairs turned, one function per math unit.
#pragma once

#include <cstdint>
#include <string_view>

namespace sparkle::cpu {

struct RotaryRow {
  const float* x = nullptr;
  const float* cosine = nullptr;
  const float* sine = nullptr;
  float* y = nullptr;
  int64_t half = 0;   // pairs
  int64_t width = 0;  // elements of the row; those behind the pairs are copied
  bool interleaved = false;
};
using RotaryFunction = void (*)(const RotaryRow& row);
// nullptr for a unit without kernels.
RotaryFunction rotary_function(std::string_view unit);

}  // namespace sparkle::cpu
