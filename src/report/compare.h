// Comparing tensors the way `verify` does: |a-b| <= absolute * max|b| + relative * |b|, integers exact, NaN equal to NaN.
#pragma once

#include <string>

#include "base/tensor.h"

namespace sparkle {

struct Tolerance {
  double absolute = 1e-5;  // times the largest |b|, or
  double relative = 1e-3;
  bool of_largest = true;  // false: `absolute` as it stands
};
// "|a-b| <= 1e-05 max|b| + 0.001 |b|", "equal".
std::string to_text(const Tolerance& tolerance);
// Operator or whole network, by element type: fp32 1e-5 / 1e-4 and 1e-3, fp16 1e-3 and 1e-2, bf16 8e-3 and 2e-2, integers 0.
Tolerance tolerance_for(DType dtype, bool whole_network);

struct Comparison {
  bool equal = false;
  std::string problem;       // the first difference in words; empty where equal
  double largest_error = 0;  // max |a-b| over finite elements
  double largest_value = 0;  // max |b|
  double relative_error() const { return largest_value > 0 ? largest_error / largest_value : largest_error; }
};
Comparison compare(const HostTensor& actual, const HostTensor& expected, const Tolerance& tolerance);

// For the floating outputs of whole quantised networks: two right engines round ties apart, and steps of 8 bits grow on their
// way, so the largest element has to be the same and the cosine of the angle between both at least 0.98.
Comparison compare_direction(const HostTensor& actual, const HostTensor& expected);

}  // namespace sparkle
