// The 16-bit floats as bits: IEEE half and bfloat16, rounded to nearest even. Rows of them: backends/cpu/conversions.h.
#pragma once

#include <bit>
#include <cstdint>

namespace sparkle {

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
uint16_t double_to_half(double value);  // rounded once
inline float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t float_to_bfloat16(float value);

}  // namespace sparkle
