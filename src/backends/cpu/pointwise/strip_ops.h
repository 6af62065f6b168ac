// One pointwise operation over a strip of floats in L1 or in memory: the instructions of the pointwise interpreter.
#pragma once

#include <cstddef>
#include <string_view>

#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {

// Floats that a splat operand must provide: the widest vector of any unit.
inline constexpr size_t kSplatFloats = 64;

// Element i is data[i & mask]: mask ~0 for a strip, 0 for one value repeated (kSplatFloats copies of it).
struct StripOperand {
  const float* data = nullptr;
  size_t mask = ~size_t{0};
};

struct StripCall {
  StripOperand x, y, z;
  float* out = nullptr;
  size_t count = 0;
  float a = 0, b = 0;       // parameters of the operation
  float low = 0, high = 0;  // bounds of the result in the clipped form
  PointwiseOp op = PointwiseOp::identity;
};
using StripFunction = void (*)(const StripCall&);

// The function of an operation on a unit, never nullptr for a unit with kernels. `clipped`: the result is bounded in registers,
// only where can_clip(op).
using StripFinder = StripFunction (*)(PointwiseOp op, bool clipped);
StripFinder strip_finder(std::string_view unit);
bool can_clip(PointwiseOp op);

}  // namespace sparkle::cpu
