// A pointwise program made ready for strips: constants and copies resolved, products and sums joined into multiply-adds, relu
// and clip joined to the operation before them, dead instructions dropped, results assigned to few temporary strips.
#pragma once

#include <vector>

#include "families/pointwise/pointwise.h"
#include "base/result.h"
#include "backends/cpu/pointwise/strip_ops.h"

namespace sparkle::cpu {

struct StripValue {
  enum Kind : uint8_t { operand, constant, slot } kind = operand;
  int index = 0;
};

struct StripStep {
  StripFunction function = nullptr;
  PointwiseOp op = PointwiseOp::identity;
  StripValue x, y, z;
  float a = 0, b = 0, low = 0, high = 0;
  bool clipped = false;
  int slot = 0;  // where the result goes; the last step's result is the output
};

struct StripProgram {
  std::vector<StripStep> steps;
  std::vector<float> constants;
  int slots = 0;
};

Result<StripProgram> compile_strips(const PointwiseParams& params, std::string_view unit);

}  // namespace sparkle::cpu
