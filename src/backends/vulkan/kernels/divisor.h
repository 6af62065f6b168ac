// Divisor: what glsl/divide.glsl divides by. For n below 2^31 and 2^(l-1) < size <= 2^l, factor = ceil(2^(31+l) / size) is off
// by less than size / 2^(31+l), so that n * factor / 2^(31+l) is off by less than 1 / size and its whole part is the quotient.
#pragma once

#include <bit>
#include <cstdint>

namespace sparkle::vulkan {

struct Divisor {
  uint32_t size = 1, factor = 0, shift = 0;  // of the product's upper word
};
inline Divisor divisor(int64_t size) {
  Divisor d;
  d.size = static_cast<uint32_t>(size < 1 ? 1 : size);
  if (d.size == 1) return d;
  const int l = std::bit_width(d.size - 1);
  d.factor = static_cast<uint32_t>(((uint64_t{1} << (31 + l)) + d.size - 1) / d.size);
  d.shift = static_cast<uint32_t>(l - 1);
  return d;
}

}  // namespace sparkle::vulkan
