// The last pass of a normalisation over one row of neighbours.
#pragma once

#include <cstddef>
#include <string_view>

namespace sparkle::cpu {

// y[i] = (x[i] - mean) * factor * scale[i] + bias[i]; scale and bias may be nullptr. y may be x.
using ApplyRow = void (*)(const float* x, float* y, size_t count, float mean, float factor, const float* scale,
                          const float* bias);
ApplyRow apply_row(std::string_view unit);

}  // namespace sparkle::cpu
