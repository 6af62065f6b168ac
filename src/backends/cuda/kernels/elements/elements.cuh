// Elements of any type as numbers and back, as families/values/convert.h converts them: integers wrap around, floats are
// truncated towards zero and saturate where the integer type ends (NaN gives 0), a truth value is x != 0.
#pragma once

#include <cmath>

#include "backends/cuda/ptx/matrix.cuh"
#include "backends/cuda/ptx/memory.cuh"
#include "base/dtype.h"

namespace sparkle::cuda {

using sparkle::DType;

template <class T>
inline constexpr bool kIsInteger = static_cast<T>(0.5) == static_cast<T>(0);

// Of a float or double; `low` and `high` are To's limits.
template <class To, class From>
SPARKLE_DEVICE To truncated(From value, To low, To high) {
  if (value != value) return 0;
  // The upper bound is a power of two, which every float type holds; the largest integer itself may round up to it.
  if (value >= static_cast<From>(high / 2 + 1) * 2) return high;
  if (value <= static_cast<From>(low)) return low;
  return static_cast<To>(value);
}
template <class To, class From>
SPARKLE_DEVICE To as_integer(From value, To low, To high) {
  if constexpr (kIsInteger<From>) return static_cast<To>(value);
  else return truncated<To>(value, low, high);
}

// `load`: what is read by, of a pointer to the bits.
template <class T, class Load>
SPARKLE_DEVICE T loaded_by(Load&& load, DType type, const void* from, int64_t at) {
  switch (type) {
    case DType::f32: return static_cast<T>(load(static_cast<const float*>(from) + at));
    case DType::f16: return static_cast<T>(float_of_half(load(static_cast<const uint16_t*>(from) + at)));
    case DType::bf16: return static_cast<T>(float_of_bfloat(load(static_cast<const uint16_t*>(from) + at)));
    case DType::f64: return static_cast<T>(load(static_cast<const double*>(from) + at));
    case DType::i8: return static_cast<T>(static_cast<int8_t>(load(static_cast<const uint8_t*>(from) + at)));
    case DType::boolean:
    case DType::u8: return static_cast<T>(load(static_cast<const uint8_t*>(from) + at));
    case DType::i16: return static_cast<T>(static_cast<int16_t>(load(static_cast<const uint16_t*>(from) + at)));
    case DType::u16: return static_cast<T>(load(static_cast<const uint16_t*>(from) + at));
    case DType::i32: return static_cast<T>(load(static_cast<const int32_t*>(from) + at));
    case DType::u32: return static_cast<T>(load(static_cast<const uint32_t*>(from) + at));
    case DType::i64: return static_cast<T>(static_cast<int64_t>(load(static_cast<const uint64_t*>(from) + at)));
    case DType::u64: return static_cast<T>(load(static_cast<const uint64_t*>(from) + at));
    default: return 0;
  }
}
// What nobody writes while the kernel runs.
template <class T>
SPARKLE_DEVICE T loaded(DType type, const void* from, int64_t at) {
  return loaded_by<T>([](const auto* p) { return load_global(p); }, type, from, at);
}

template <class T>
SPARKLE_DEVICE void stored(DType type, void* to, int64_t at, T value) {
  switch (type) {
    case DType::f32: return store_global(static_cast<float*>(to) + at, static_cast<float>(value));
    case DType::f16: return store_global(static_cast<uint16_t*>(to) + at, half_of(static_cast<float>(value)));
    case DType::bf16: return store_global(static_cast<uint16_t*>(to) + at, bfloat_of(static_cast<float>(value)));
    case DType::f64: return store_global(static_cast<double*>(to) + at, static_cast<double>(value));
    case DType::i8: return store_global(static_cast<int8_t*>(to) + at, as_integer<int8_t>(value, INT8_MIN, INT8_MAX));
    case DType::u8: return store_global(static_cast<uint8_t*>(to) + at, as_integer<uint8_t>(value, 0, UINT8_MAX));
    case DType::boolean: return store_global(static_cast<uint8_t*>(to) + at, static_cast<uint8_t>(value != 0));
    case DType::i16: return store_global(static_cast<int16_t*>(to) + at, as_integer<int16_t>(value, INT16_MIN, INT16_MAX));
    case DType::u16: return store_global(static_cast<uint16_t*>(to) + at, as_integer<uint16_t>(value, 0, UINT16_MAX));
    case DType::i32: return store_global(static_cast<int32_t*>(to) + at, as_integer<int32_t>(value, INT32_MIN, INT32_MAX));
    case DType::u32: return store_global(static_cast<uint32_t*>(to) + at, as_integer<uint32_t>(value, 0, UINT32_MAX));
    case DType::i64: return store_global(static_cast<int64_t*>(to) + at, as_integer<int64_t>(value, INT64_MIN, INT64_MAX));
    case DType::u64: return store_global(static_cast<uint64_t*>(to) + at, as_integer<uint64_t>(value, 0, UINT64_MAX));
    default: return;
  }
}

}  // namespace sparkle::cuda
