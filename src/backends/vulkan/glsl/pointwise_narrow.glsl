// Elements of fewer than 16 bits (families/values/narrow.h): numbers from their codes and back, by the bits. A format is the number of
// its exponent's and mantissa's bits, its bias, the code of the largest magnitude, of what lies beyond, and of NaN; without -0
// the one NaN has its code. Parts are divided by empty lines.

float float_of_narrow(uint code, int exponent_bits, int mantissa_bits, int bias, uint largest, uint beyond, uint nan,
                      bool unsigned_zero) {
  const uint sign_bit = 1u << (exponent_bits + mantissa_bits);
  const uint size = code & (sign_bit - 1u);
  const uint sign_of_result = (code & sign_bit) != 0u ? 0x80000000u : 0u;
  if (unsigned_zero && code == nan) return uintBitsToFloat(0x7fc00000u);
  if (!unsigned_zero && size > largest)
    return uintBitsToFloat(beyond != nan && size == beyond ? sign_of_result | 0x7f800000u : 0x7fc00000u);
  const uint exponent = size >> mantissa_bits, fraction = size & ((1u << mantissa_bits) - 1u);
  if (exponent == 0u) {
    const float value = float(fraction) * uintBitsToFloat(uint(128 - bias - mantissa_bits) << 23);
    return uintBitsToFloat(floatBitsToUint(value) | sign_of_result);
  }
  return uintBitsToFloat(sign_of_result | uint(int(exponent) - bias + 127) << 23 | fraction << (23 - mantissa_bits));
}

uint narrow_of_float(float x, int exponent_bits, int mantissa_bits, int bias, uint largest, uint beyond, uint nan,
                     bool unsigned_zero) {
  const uint bits = floatBitsToUint(x), size = bits & 0x7fffffffu;
  const bool is_nan = size > 0x7f800000u;
  uint code = is_nan ? nan : 0u;
  if (!is_nan) {
    // The value is significand * 2^(exponent - 23); one unit of the result is 2^(place - mantissa_bits).
    const int stored = int(size >> 23), exponent = max(stored, 1) - 127;
    const uint significand = (size & 0x7fffffu) | (stored == 0 ? 0u : 0x800000u);
    const int least = 1 - bias, place = max(exponent, least), shift = 23 - mantissa_bits + (place - exponent);
    if (shift <= 24) {
      uint units = significand >> shift;
      const uint rest = significand & ((1u << shift) - 1u), half_unit = 1u << (shift - 1);
      if (rest > half_unit || (rest == half_unit && (units & 1u) != 0u)) ++units;
      code = (uint(place - least) << mantissa_bits) + units;
      if (code > largest) code = beyond;
    }
  }
  const bool keeps_sign = (!unsigned_zero || (code != 0u && code != nan)) && !(nan == 0u && is_nan);
  return code | (bits != size && keeps_sign ? 1u << (exponent_bits + mantissa_bits) : 0u);
}

float float_of_power(uint code) { return uintBitsToFloat(code == 255u ? 0x7fc00000u : code == 0u ? 0x00400000u : code << 23); }

// To a power of two: rounding 0 the next one up, 1 down, 2 the nearer one.
uint power_of_float(float x, int rounding, bool saturate) {
  const uint bits = floatBitsToUint(x), size = bits & 0x7fffffffu;
  if (size > 0x7f800000u || (bits != size && size != 0u)) return 255u;
  if (size == 0u) return saturate ? 0u : 255u;
  int exponent = int(size >> 23) - 127;
  uint fraction = size & 0x7fffffu;
  if (exponent == -127) {
    const int up = 23 - findMSB(fraction);
    exponent += 1 - up;
    fraction = (fraction << up) & 0x7fffffu;
  }
  if (exponent < -127) return saturate ? 0u : 255u;
  if (exponent > 127 || (exponent == 127 && fraction != 0u)) return saturate ? 254u : 255u;
  const bool next = rounding == 0 ? fraction != 0u : rounding == 2 && fraction >= 0x400000u;
  return uint(exponent + 127) + (next ? 1u : 0u);
}

float to_power_of_two(float x, float rounding, float saturate) {
  return float_of_power(power_of_float(x, int(rounding), saturate != 0.0));
}
