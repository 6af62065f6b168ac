// Rows of elements of any type to floats and back, per unit: how kernels that compute in f32 read and write other types.
// Rounding and saturation as families/values/convert.h says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace sparkle::cpu {

struct Conversions {
  void (*load)(const std::byte* from, int64_t count, float* to) = nullptr;
  void (*store)(const float* from, int64_t count, std::byte* to) = nullptr;
};

// Between `type` and f32; functions of neighbouring elements. nullptr functions where there is no such unit.
Conversions conversions(std::string_view unit, DType type);

// The same for elements `stride` apart.
void load_floats(const Conversions& c, DType type, const std::byte* from, int64_t stride, int64_t count, float* to);
void store_floats(const Conversions& c, DType type, const float* from, int64_t count, std::byte* to, int64_t stride);

}  // namespace sparkle::cpu
