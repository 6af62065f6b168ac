// Elements of each type as they lie in memory, as numbers and back, as families/values/convert.h converts them: integers wrap
// around, floats are truncated towards zero and saturate where the integer type ends (NaN gives 0), a truth value is x != 0.
// Compiled with the kernels of this build and, as text, by NVRTC with programs that come with a model.
#pragma once

#include "backends/cuda/ptx/matrix.cuh"
#include "backends/cuda/ptx/memory.cuh"

namespace sparkle::cuda {

template <class T>
inline constexpr bool kIsInteger = static_cast<T>(0.5) == static_cast<T>(0);
template <class T>
inline constexpr bool kIsSigned = static_cast<T>(-1) < static_cast<T>(0);

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

// A cell: the bits that lie in memory, the number that they are as a T, and the bits that a T becomes.
template <class B>
struct PlainCell {
  using Bits = B;
  template <class T>
  SPARKLE_DEVICE static T number(Bits bits) {
    return static_cast<T>(bits);
  }
  template <class T>
  SPARKLE_DEVICE static Bits bits(T value) {
    return static_cast<B>(value);
  }
};
using CellF32 = PlainCell<float>;
using CellF64 = PlainCell<double>;
// Converted to a float and from one.
template <float (*kFloat)(uint16_t), uint16_t (*kBits)(float)>
struct HalfCell {
  using Bits = uint16_t;
  template <class T>
  SPARKLE_DEVICE static T number(Bits bits) {
    return static_cast<T>(kFloat(bits));
  }
  template <class T>
  SPARKLE_DEVICE static Bits bits(T value) {
    return kBits(static_cast<float>(value));
  }
};
using CellF16 = HalfCell<float_of_half, half_of>;
using CellBf16 = HalfCell<float_of_bfloat, bfloat_of>;
struct CellBool {
  using Bits = uint8_t;
  template <class T>
  SPARKLE_DEVICE static T number(Bits bits) {
    return static_cast<T>(bits);
  }
  template <class T>
  SPARKLE_DEVICE static Bits bits(T value) {
    return static_cast<uint8_t>(value != 0);
  }
};
template <class I, class B, I kLow, I kHigh>
struct IntegerCell {
  using Bits = B;
  template <class T>
  SPARKLE_DEVICE static T number(Bits bits) {
    return static_cast<T>(static_cast<I>(bits));
  }
  template <class T>
  SPARKLE_DEVICE static Bits bits(T value) {
    return static_cast<Bits>(as_integer<I>(value, kLow, kHigh));
  }
};
using CellI8 = IntegerCell<int8_t, uint8_t, INT8_MIN, INT8_MAX>;
using CellU8 = IntegerCell<uint8_t, uint8_t, 0, UINT8_MAX>;
using CellI16 = IntegerCell<int16_t, uint16_t, INT16_MIN, INT16_MAX>;
using CellU16 = IntegerCell<uint16_t, uint16_t, 0, UINT16_MAX>;
using CellI32 = IntegerCell<int32_t, int32_t, INT32_MIN, INT32_MAX>;
using CellU32 = IntegerCell<uint32_t, uint32_t, 0, UINT32_MAX>;
using CellI64 = IntegerCell<int64_t, uint64_t, INT64_MIN, INT64_MAX>;
using CellU64 = IntegerCell<uint64_t, uint64_t, 0, UINT64_MAX>;

}  // namespace sparkle::cuda
