// Cast as a pointwise program: what the conversion into the result's type (families/values/convert.h) leaves open is done
// before it.
#pragma once

#include "families/values/narrow.h"
#include "families/pointwise/pointwise.h"

namespace sparkle {

// To `to`: 8-bit floats that saturate are bounded first; powers of two that are not to be the next one up, or not to saturate,
// are found first.
inline PointwiseParams cast_program(DType to, bool saturate, PowerRounding rounding) {
  PointwiseInstruction step;
  if (to == DType::f8e8m0) {
    if (!saturate || rounding != PowerRounding::up)
      step = {PointwiseOp::power_of_two, 0, 0, 0, static_cast<double>(static_cast<int>(rounding)), saturate ? 1.0 : 0.0};
  } else if (saturate && ends_in_nan_or_infinity(to)) {
    step = {PointwiseOp::clip, 0, 0, 0, -largest_of(to), largest_of(to)};
  }
  return {1, {step}};
}

}  // namespace sparkle
