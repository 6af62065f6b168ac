// The last pass of a normalisation over one row of neighbours.
#pragma once

#include <cstddef>
#include <string_view>

namespace sparkle::cpu {

// y[i] = (x[i] - mean) * factor * scale[i] + bias[i]; without a scale that is one, without a bias bias_value or nothing.
// y may be x.
struct ApplyArguments {
  const float* x = nullptr;
  float* y = nullptr;
  size_t count = 0;
  float mean = 0, factor = 1;
  const float *scale = nullptr, *bias = nullptr;
  bool has_bias_value = false;
  float bias_value = 0;
};
using ApplyRow = void (*)(const ApplyArguments&);
ApplyRow apply_row(std::string_view unit);

}  // namespace sparkle::cpu
