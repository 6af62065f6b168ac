// Integers in memory, and arithmetic that gives the same bits on every device: nothing here is contracted to a fused product.
#pragma once

#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/ptx/matrix.cuh"

namespace sparkle::cuda {

// Types of fewer than 8 bits lie in the low ones of a byte.
SPARKLE_DEVICE int32_t integer_at(DType type, const void* from, int64_t at) {
  switch (type) {
    case DType::i4: return static_cast<int8_t>(load_global(static_cast<const uint8_t*>(from) + at) << 4) >> 4;
    case DType::u4: return load_global(static_cast<const uint8_t*>(from) + at) & 15;
    case DType::i2: return static_cast<int8_t>(load_global(static_cast<const uint8_t*>(from) + at) << 6) >> 6;
    case DType::u2: return load_global(static_cast<const uint8_t*>(from) + at) & 3;
    default: return loaded<int32_t>(type, from, at);
  }
}
SPARKLE_DEVICE void put_integer(DType type, void* to, int64_t at, int32_t value) {
  switch (type) {
    case DType::i4:
    case DType::u4: return store_global(static_cast<uint8_t*>(to) + at, static_cast<uint8_t>(value & 15));
    case DType::i2:
    case DType::u2: return store_global(static_cast<uint8_t*>(to) + at, static_cast<uint8_t>(value & 3));
    default: return stored<int32_t>(type, to, at, value);
  }
}

// The four bytes of a word.
SPARKLE_DEVICE int32_t byte_of(DType type, uint32_t word, int i) {
  const auto byte = static_cast<uint8_t>(word >> (8 * i));
  return type == DType::i8 ? static_cast<int8_t>(byte) : byte;
}
SPARKLE_DEVICE uint32_t word_of(const int32_t (&v)[4]) {
  return (static_cast<uint32_t>(v[0]) & 255) | (static_cast<uint32_t>(v[1]) & 255) << 8 |
         (static_cast<uint32_t>(v[2]) & 255) << 16 | static_cast<uint32_t>(v[3]) << 24;
}

SPARKLE_DEVICE float exact_product(float a, float b) {
#ifdef __CUDACC__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
SPARKLE_DEVICE float exact_sum(float a, float b) {
#ifdef __CUDACC__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
SPARKLE_DEVICE float exact_quotient(float a, float b) {
#ifdef __CUDACC__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

// As families/integers and families/quantize define them.
SPARKLE_DEVICE float bounded(float value, int32_t zero, int32_t low, int32_t high) {
  const float least = static_cast<float>(low - zero), most = static_cast<float>(high - zero);
  return value < least ? least : value > most ? most : value;
}
SPARKLE_DEVICE int32_t requantized(int32_t sum, float factor, int32_t zero, int32_t low, int32_t high) {
  return to_nearest(bounded(exact_product(static_cast<float>(sum), factor), zero, low, high)) + zero;
}
// NaN gives what zero gives.
SPARKLE_DEVICE int32_t quantized(float quotient, int32_t zero, int32_t low, int32_t high) {
  if (quotient != quotient) return zero < low ? low : zero > high ? high : zero;
  return to_nearest(bounded(quotient, zero, low, high)) + zero;
}

}  // namespace sparkle::cuda
