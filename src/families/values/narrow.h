// The element types below 16 bits and conversions from and to them: 8-bit floats (OCP E4M3 and E5M2 as ONNX names them, their
// variants FNUZ without infinities and negative zero, the powers of two E8M0), E2M1 of 4 bits, integers of 4 and 2 bits. A
// value is read by a table of all 256 bytes and written by rounding its bits, so that no mode of the floating-point unit
// matters. Bits beyond the element's own are ignored where it is read and zero where it is written.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/dtype.h"

namespace sparkle {

// How a value becomes a power of two (f8e8m0): the next one up or down, or the nearer one, from the middle on the upper.
enum class PowerRounding : uint8_t { up, down, nearest };
constexpr std::string_view name_of(PowerRounding rounding) {
  return rounding == PowerRounding::up ? "up" : rounding == PowerRounding::down ? "down" : "nearest";
}
constexpr bool parse_name(std::string_view text, PowerRounding& rounding) {
  for (const PowerRounding r : {PowerRounding::up, PowerRounding::down, PowerRounding::nearest})
    if (name_of(r) == text) return rounding = r, true;
  return false;
}

namespace narrow {

// A sign, then exponent and mantissa; the magnitudes are ordered as their codes are, so that a carry out of the mantissa is
// the next exponent.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  uint8_t largest;     // the code of the largest finite magnitude
  uint8_t beyond;      // what rounds to more becomes this: infinity, NaN, or the largest
  uint8_t nan;         // what NaN becomes, the sign aside
  bool unsigned_zero;  // FNUZ: there is no -0, its code is the one NaN
};
constexpr Format format_of(DType type) {
  switch (type) {
    case DType::f8e4m3fn: return {4, 3, 7, 0x7e, 0x7f, 0x7f, false};
    case DType::f8e4m3fnuz: return {4, 3, 8, 0x7f, 0x80, 0x80, true};
    case DType::f8e5m2: return {5, 2, 15, 0x7b, 0x7c, 0x7e, false};
    case DType::f8e5m2fnuz: return {5, 2, 16, 0x7f, 0x80, 0x80, true};
    default: return {2, 1, 1, 0x07, 0x07, 0x00, false};  // f4e2m1, which has neither infinity nor NaN
  }
}

constexpr double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

constexpr double decode(DType type, uint8_t code) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  switch (type) {
    case DType::i4: return static_cast<int8_t>(static_cast<uint8_t>(code << 4)) / 16;
    case DType::u4: return code & 15;
    case DType::i2: return static_cast<int8_t>(static_cast<uint8_t>(code << 6)) / 64;
    case DType::u2: return code & 3;
    case DType::f8e8m0: return code == 0xff ? kNan : power_of_two(code - 127);
    default: break;
  }
  const Format f = format_of(type);
  const int sign = 1 << (f.exponent_bits + f.mantissa_bits), magnitude = code & (sign - 1);
  if (f.unsigned_zero && code == f.nan) return kNan;
  if (!f.unsigned_zero && magnitude > f.largest)
    return type == DType::f8e5m2 && magnitude == f.beyond ? (code & sign ? -kInfinity : kInfinity) : kNan;
  const int exponent = magnitude >> f.mantissa_bits, whole = 1 << f.mantissa_bits, fraction = magnitude & (whole - 1);
  const double value = exponent == 0 ? fraction * power_of_two(1 - f.bias - f.mantissa_bits)
                                     : (whole + fraction) * power_of_two(exponent - f.bias - f.mantissa_bits);
  return code & sign ? -value : value;
}

template <class F>
using Bits = std::conditional_t<sizeof(F) == 8, uint64_t, uint32_t>;
template <class F>
inline constexpr int kMantissa = std::numeric_limits<F>::digits - 1;
template <class F>
inline constexpr int kBias = std::numeric_limits<F>::max_exponent - 1;
template <class F>
inline constexpr Bits<F> kSign = Bits<F>{1} << (8 * sizeof(F) - 1);

// To nearest, even in the middle; what rounds beyond the largest becomes Format::beyond.
template <class F>
constexpr uint8_t encode(const Format& f, F value) {
  constexpr int m = kMantissa<F>;
  const auto bits = std::bit_cast<Bits<F>>(value), size = bits & ~kSign<F>;
  int code = 0;
  if (size > std::bit_cast<Bits<F>>(std::numeric_limits<F>::infinity())) {
    code = f.nan;
  } else {
    // The value is significand * 2^(exponent - m); one unit of the result is 2^(place - mantissa_bits).
    const int stored = static_cast<int>(size >> m), exponent = (stored == 0 ? 1 : stored) - kBias<F>;
    const Bits<F> significand = (size & ((Bits<F>{1} << m) - 1)) | (stored == 0 ? 0 : Bits<F>{1} << m);
    const int least = 1 - f.bias, place = exponent < least ? least : exponent;
    const int shift = m - f.mantissa_bits + (place - exponent);
    if (shift <= m + 1) {  // else less than half of a unit
      Bits<F> units = significand >> shift;
      const Bits<F> rest = significand & ((Bits<F>{1} << shift) - 1), half = Bits<F>{1} << (shift - 1);
      if (rest > half || (rest == half && (units & 1))) ++units;
      code = ((place - least) << f.mantissa_bits) + static_cast<int>(units);
      if (code > f.largest) code = f.beyond;
    }
  }
  const int sign = 1 << (f.exponent_bits + f.mantissa_bits);
  const bool keeps_sign = !f.unsigned_zero || (code != 0 && code != f.nan);
  const bool no_nan = f.nan == 0 && size > std::bit_cast<Bits<F>>(std::numeric_limits<F>::infinity());
  return static_cast<uint8_t>(code | (bits != size && keeps_sign && !no_nan ? sign : 0));
}

// To a power of two. Below 2^-127 and above 2^127, where the type ends: the nearest end, or NaN where that is not to be; NaN
// for negative numbers.
template <class F>
constexpr uint8_t encode_power(F value, PowerRounding rounding, bool saturate) {
  constexpr uint8_t kNan = 0xff;
  constexpr int m = kMantissa<F>;
  const auto bits = std::bit_cast<Bits<F>>(value), size = bits & ~kSign<F>;
  const auto infinity = std::bit_cast<Bits<F>>(std::numeric_limits<F>::infinity());
  if (size > infinity || (bits != size && size != 0)) return kNan;
  if (size == 0) return saturate ? 0 : kNan;
  int exponent = static_cast<int>(size >> m) - kBias<F>;
  Bits<F> fraction = size & ((Bits<F>{1} << m) - 1);
  if (exponent == -kBias<F>) {  // a subnormal number: its leading bit becomes the whole
    const int up = std::countl_zero(fraction) - (static_cast<int>(8 * sizeof(F)) - 1 - m);
    exponent += 1 - up;
    fraction = (fraction << up) & ((Bits<F>{1} << m) - 1);
  }
  if (exponent < -127) return saturate ? 0 : kNan;
  if (exponent > 127 || (exponent == 127 && fraction != 0)) return saturate ? 0xfe : kNan;
  const bool next = rounding == PowerRounding::up        ? fraction != 0
                    : rounding == PowerRounding::nearest ? fraction >= Bits<F>{1} << (m - 1)
                                                         : false;
  return static_cast<uint8_t>(exponent + 127 + (next ? 1 : 0));
}

template <DType type>
constexpr std::array<double, 256> decoded_doubles() {
  std::array<double, 256> values{};
  for (size_t i = 0; i < values.size(); ++i) values[i] = decode(type, static_cast<uint8_t>(i));
  return values;
}
template <DType type>
constexpr std::array<float, 256> decoded_floats() {
  std::array<float, 256> values{};
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(decode(type, static_cast<uint8_t>(i)));
  return values;
}

// Every byte as a number: exact in both.
template <DType type>
inline constexpr std::array<double, 256> kDoubleOf = decoded_doubles<type>();
template <DType type>
inline constexpr std::array<float, 256> kFloatOf = decoded_floats<type>();

}  // namespace narrow

// An integer to 4 or 2 bits: the low ones, as between all integer types.
template <DType type>
constexpr std::byte low_bits(uint64_t value) {
  return static_cast<std::byte>(value & ((1u << stored_bits(type)) - 1));
}

// A float or double as the code of a narrow float; E8M0 takes the next power up and saturates, the others give infinity or NaN
// beyond their largest (E2M1, which has neither, the largest).
template <DType type, class F>
constexpr std::byte encoded(F value) {
  if constexpr (type == DType::f8e8m0) {
    return static_cast<std::byte>(narrow::encode_power(value, PowerRounding::up, true));
  } else {
    return static_cast<std::byte>(narrow::encode(narrow::format_of(type), value));
  }
}

// True for the 8-bit floats whose codes beyond the largest number are infinity or NaN.
constexpr bool ends_in_nan_or_infinity(DType type) {
  return is_narrow_float(type) && type != DType::f8e8m0 && type != DType::f4e2m1;
}
// The largest finite number.
constexpr double largest_of(DType type) {
  return type == DType::f8e8m0 ? narrow::power_of_two(127) : narrow::decode(type, narrow::format_of(type).largest);
}

// x as a power of two that f8e8m0 holds, or NaN: the pointwise operation of that name, a rounding and b whether to saturate.
constexpr double to_power_of_two(double x, double a, double b) {
  return narrow::decode(DType::f8e8m0, narrow::encode_power(x, static_cast<PowerRounding>(static_cast<int>(a)), b != 0));
}

// f.template operator()<type>() for a narrow type; false, without a call, for the others.
template <class F>
constexpr bool with_narrow(DType type, F&& f) {
  switch (type) {
    case DType::f8e4m3fn: return f.template operator()<DType::f8e4m3fn>(), true;
    case DType::f8e4m3fnuz: return f.template operator()<DType::f8e4m3fnuz>(), true;
    case DType::f8e5m2: return f.template operator()<DType::f8e5m2>(), true;
    case DType::f8e5m2fnuz: return f.template operator()<DType::f8e5m2fnuz>(), true;
    case DType::f8e8m0: return f.template operator()<DType::f8e8m0>(), true;
    case DType::f4e2m1: return f.template operator()<DType::f4e2m1>(), true;
    case DType::i4: return f.template operator()<DType::i4>(), true;
    case DType::u4: return f.template operator()<DType::u4>(), true;
    case DType::i2: return f.template operator()<DType::i2>(), true;
    case DType::u2: return f.template operator()<DType::u2>(), true;
    default: return false;
  }
}

}  // namespace sparkle
