#include "families/values/element.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/half_floats.h"
#include "families/values/narrow.h"

namespace sparkle {
namespace {

template <class T>
double load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

template <class T>
void store(double value, std::byte* to) {
  T stored;
  if constexpr (std::numeric_limits<T>::is_integer) {
    // The bounds are compared as doubles: the largest 64-bit integers round up to a power of two that must saturate.
    constexpr auto low = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());
    const double rounded = std::nearbyint(value);
    if (std::isnan(value)) {
      stored = 0;
    } else if (rounded <= low) {
      stored = std::numeric_limits<T>::min();
    } else if (rounded >= high) {
      stored = std::numeric_limits<T>::max();
    } else {
      stored = static_cast<T>(rounded);
    }
  } else {
    stored = static_cast<T>(value);
  }
  std::memcpy(to, &stored, sizeof stored);
}

uint16_t bits_of(const std::byte* from) {
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}
void store_bits(uint16_t bits, std::byte* to) { std::memcpy(to, &bits, sizeof bits); }

// Integers round to nearest even and saturate, as those of 8 bits do.
template <DType type>
std::byte saturated(double value) {
  if constexpr (is_narrow_integer(type)) {
    constexpr int kBits = static_cast<int>(stored_bits(type));
    constexpr bool kSigned = type == DType::i4 || type == DType::i2;
    constexpr double low = kSigned ? -(1 << (kBits - 1)) : 0, high = (1 << (kSigned ? kBits - 1 : kBits)) - 1;
    const double rounded = std::isnan(value) ? 0 : std::nearbyint(value);
    return low_bits<type>(static_cast<uint64_t>(static_cast<int64_t>(rounded < low ? low : rounded > high ? high : rounded)));
  } else {
    return encoded<type>(value);
  }
}

}  // namespace

double load_element(DType type, const std::byte* from) {
  switch (type) {
    case DType::f32: return load<float>(from);
    case DType::f64: return load<double>(from);
    case DType::f16: return half_to_float(bits_of(from));
    case DType::bf16: return bfloat16_to_float(bits_of(from));
    case DType::i8: return load<int8_t>(from);
    case DType::u8: return load<uint8_t>(from);
    case DType::i16: return load<int16_t>(from);
    case DType::u16: return load<uint16_t>(from);
    case DType::i32: return load<int32_t>(from);
    case DType::u32: return load<uint32_t>(from);
    case DType::i64: return load<int64_t>(from);
    case DType::u64: return load<uint64_t>(from);
    case DType::boolean: return load<uint8_t>(from) != 0;
    default: break;
  }
  double value = 0;
  with_narrow(type, [&]<DType kType> { value = narrow::kDoubleOf<kType>[static_cast<size_t>(*from)]; });
  return value;
}

void store_element(DType type, double value, std::byte* to) {
  switch (type) {
    case DType::f32: return store<float>(value, to);
    case DType::f64: return store<double>(value, to);
    case DType::f16: return store_bits(double_to_half(value), to);
    case DType::bf16: return store_bits(float_to_bfloat16(static_cast<float>(value)), to);
    case DType::i8: return store<int8_t>(value, to);
    case DType::u8: return store<uint8_t>(value, to);
    case DType::i16: return store<int16_t>(value, to);
    case DType::u16: return store<uint16_t>(value, to);
    case DType::i32: return store<int32_t>(value, to);
    case DType::u32: return store<uint32_t>(value, to);
    case DType::i64: return store<int64_t>(value, to);
    case DType::u64: return store<uint64_t>(value, to);
    case DType::boolean: return store<uint8_t>(value != 0 ? 1 : 0, to);
    default: break;
  }
  with_narrow(type, [&]<DType kType> { *to = saturated<kType>(value); });
}

}  // namespace sparkle
