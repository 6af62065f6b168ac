// The normalize family: (x - mean) / divisor over `axes`, then scale and bias. Instance, layer and group normalisation are this
// with different axes (a group is a view with the channel axis split in two).
// Operands: x, then scale and bias if present, both with x's rank and broadcast by stride 0 -> y like x.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

// What x - mean is divided by: sqrt(variance + epsilon), sqrt(variance) + epsilon, the sum of |x|, the root of the sum of x^2.
enum class NormalizeDivisor : uint8_t { variance, deviation, l1, l2 };
std::string_view name_of(NormalizeDivisor divisor);
bool parse_name(std::string_view text, NormalizeDivisor& divisor);

struct NormalizeParams {
  Dims axes;
  double epsilon = 1e-5;
  bool center = true;  // false: root-mean-square normalisation, no mean is taken off
  bool scale = true, bias = true;
  NormalizeDivisor divisor = NormalizeDivisor::variance;

  template <class V>
  void visit(V& v) {
    v("axes", axes), v("epsilon", epsilon), v("center", center), v("scale", scale), v("bias", bias);
    v("divisor", divisor);
  }
  friend bool operator==(const NormalizeParams&, const NormalizeParams&) = default;
};

// 1 / divisor from the sum over `count` elements: of |x - mean| for l1, else of (x - mean)^2.
double normalize_factor(const NormalizeParams& params, double total, double count);

}  // namespace sparkle
