// Rows of elements converted between types, as Cast does: integers wrap around, floats are truncated towards zero and saturate
// where the integer type ends (NaN gives 0), a truth value is x != 0, floats round to nearest even. Integers of 4 and 2 bits
// take the low bits of what an integer of 64 bits would be, of floats too; 8- and 4-bit floats as families/values/narrow.h says
// of encoded().
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "families/values/element.h"
#include "families/values/narrow.h"

namespace sparkle {

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    // The upper bound is a power of two, which every float type holds; the largest integer itself may round up to it.
    constexpr From beyond = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (value != value) return 0;
    if (value >= beyond) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

// A value as the byte that holds it in a narrow type.
template <DType type, class From>
std::byte narrowed(From value) {
  if constexpr (is_narrow_integer(type)) {
    return low_bits<type>(static_cast<uint64_t>(converted<int64_t>(value)));
  } else if constexpr (std::is_floating_point_v<From>) {
    return encoded<type>(value);
  } else {
    return encoded<type>(static_cast<double>(value));
  }
}

// Calls f with a null pointer of the C++ type that holds `type`; false for f16, bf16, bool and the narrow types, which have
// none.
template <class F>
bool with_type(DType type, F&& f) {
  switch (type) {
    case DType::f32: f(static_cast<float*>(nullptr)); return true;
    case DType::f64: f(static_cast<double*>(nullptr)); return true;
    case DType::i8: f(static_cast<int8_t*>(nullptr)); return true;
    case DType::u8: f(static_cast<uint8_t*>(nullptr)); return true;
    case DType::i16: f(static_cast<int16_t*>(nullptr)); return true;
    case DType::u16: f(static_cast<uint16_t*>(nullptr)); return true;
    case DType::i32: f(static_cast<int32_t*>(nullptr)); return true;
    case DType::u32: f(static_cast<uint32_t*>(nullptr)); return true;
    case DType::i64: f(static_cast<int64_t*>(nullptr)); return true;
    case DType::u64: f(static_cast<uint64_t*>(nullptr)); return true;
    default: return false;
  }
}

// `count` elements of `type`, `stride` elements apart, to neighbouring T.
template <class T>
void load_row(DType type, const std::byte* from, int64_t stride, int64_t count, T* to) {
  const bool plain = with_type(type, [&]<class From>(From*) {
    const From* x = reinterpret_cast<const From*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = converted<T>(x[i * stride]);
  });
  if (plain) return;
  const bool is_done = with_narrow(type, [&]<DType kType> {
    for (int64_t i = 0; i < count; ++i) to[i] = converted<T>(narrow::kDoubleOf<kType>[static_cast<size_t>(from[i * stride])]);
  });
  if (is_done) return;
  for (int64_t i = 0; i < count; ++i) to[i] = converted<T>(load_element(type, from + i * stride * size_of(type)));
}

// The way back.
template <class T>
void store_row(DType type, const T* from, int64_t count, std::byte* to, int64_t stride) {
  const bool plain = with_type(type, [&]<class To>(To*) {
    To* y = reinterpret_cast<To*>(to);
    for (int64_t i = 0; i < count; ++i) y[i * stride] = converted<To>(from[i]);
  });
  if (plain) return;
  const bool is_done = with_narrow(type, [&]<DType kType> {
    for (int64_t i = 0; i < count; ++i) to[i * stride] = narrowed<kType>(from[i]);
  });
  if (is_done) return;
  if (type == DType::boolean) {
    for (int64_t i = 0; i < count; ++i) to[i * stride] = static_cast<std::byte>(from[i] != 0);
    return;
  }
  for (int64_t i = 0; i < count; ++i) store_element(type, static_cast<double>(from[i]), to + i * stride * size_of(type));
}

}  // namespace sparkle
