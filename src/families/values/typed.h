// Element types as C++ types, for loops that are exact in the element's own type: a 64-bit integer is no double.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "families/values/element.h"

namespace sparkle {

// The 16-bit floats as bits; arithmetic on them is done in float.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// f(T{}) with T the C++ type of the elements; truth values are bytes of 0 or 1, the narrow types bytes that may only be moved.
template <class F>
decltype(auto) visit_type(DType type, F&& f) {
  switch (type) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::f16: return f(Float16{});
    case DType::bf16: return f(BFloat16{});
    case DType::i8: return f(int8_t{});
    case DType::i16: return f(int16_t{});
    case DType::i32: return f(int32_t{});
    case DType::i64: return f(int64_t{});
    case DType::u16: return f(uint16_t{});
    case DType::u32: return f(uint32_t{});
    case DType::u64: return f(uint64_t{});
    case DType::u8:
    case DType::boolean:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2: break;
  }
  return f(uint8_t{});
}

template <class T>
inline constexpr bool is_16_bit_float = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_float_type = std::is_floating_point_v<T> || is_16_bit_float<T>;

// The type to do arithmetic in: itself, or float.
template <class T>
using Computed = std::conditional_t<is_16_bit_float<T>, float, T>;

template <class T>
Computed<T> to_computed(T value) {
  if constexpr (is_16_bit_float<T>) {
    constexpr DType type = std::is_same_v<T, Float16> ? DType::f16 : DType::bf16;
    return static_cast<float>(load_element(type, reinterpret_cast<const std::byte*>(&value)));
  } else {
    return value;
  }
}

// From an accumulator back to an element: the 16-bit floats are rounded.
template <class T, class A>
T from_computed(A value) {
  if constexpr (is_16_bit_float<T>) {
    constexpr DType type = std::is_same_v<T, Float16> ? DType::f16 : DType::bf16;
    T result;
    store_element(type, static_cast<double>(value), reinterpret_cast<std::byte*>(&result));
    return result;
  } else {
    return static_cast<T>(value);
  }
}

// Sums and products of integers wrap around.
template <class T>
T wrapped_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}
template <class T>
T wrapped_product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// An unsigned number that orders as the values do: NaN above everything, the two zeros equal.
template <class T>
auto order_key(T value) {
  if constexpr (std::is_floating_point_v<T> || is_16_bit_float<T>) {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
    constexpr Bits kInfinity = sizeof(T) == 8               ? static_cast<Bits>(0x7ff0000000000000)
                               : sizeof(T) == 4             ? static_cast<Bits>(0x7f800000)
                               : std::is_same_v<T, Float16> ? static_cast<Bits>(0x7c00)
                                                            : static_cast<Bits>(0x7f80);
    const Bits bits = std::bit_cast<Bits>(value), size = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
    if (size > kInfinity) return std::numeric_limits<Key>::max();
    return static_cast<Key>(bits == size ? bits | kSign : static_cast<Bits>(kSign - size));
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<uint64_t>(value) ^ (std::is_signed_v<T> ? uint64_t{1} << 63 : 0);
  } else {
    return static_cast<uint32_t>(value) ^ (std::is_signed_v<T> ? uint32_t{1} << 31 : 0);
  }
}

}  // namespace sparkle
