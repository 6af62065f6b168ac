// Products of a warp (sm_80 and later), their operands from shared memory, and conversions of types.
#pragma once

#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/operand.h"

#ifndef __CUDACC__
#include <cmath>
#include "base/half_floats.h"
#endif

namespace sparkle::cuda {

// Four matrices of 8 rows of 16 bytes; lane i gives the address of row i % 8 of matrix i / 8.
SPARKLE_DEVICE void load_matrix_4(uint32_t (&r)[4], SharedAddress row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
#else
  cuda_model::load_matrix(r, 4, row, false);
#endif
}
// The same with rows and columns of 16-bit elements exchanged.
SPARKLE_DEVICE void load_matrix_4_transposed(uint32_t (&r)[4], SharedAddress row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
#else
  cuda_model::load_matrix(r, 4, row, true);
#endif
}
// The other way round (sm_90): lane i gives the address that row i % 8 of matrix i / 8 goes to.
SPARKLE_DEVICE void store_matrix_4(SharedAddress row, const uint32_t (&r)[4]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]), "r"(r[1]), "r"(r[2]),
               "r"(r[3])
               : "memory");
#else
  cuda_model::store_matrix(row, r, 4, false);
#endif
}
// The same with rows and columns of 16-bit elements exchanged.
SPARKLE_DEVICE void store_matrix_4_transposed(SharedAddress row, const uint32_t (&r)[4]) {
#ifdef __CUDACC__
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
#else
  cuda_model::store_matrix(row, r, 4, true);
#endif
}

// What sums of an operand's products are kept in.
template <Operand kType>
struct SumOf {
  using Type = float;
};
template <>
struct SumOf<Operand::i8> {
  using Type = int32_t;
};
template <>
struct SumOf<Operand::u8> {
  using Type = int32_t;
};

#ifndef __CUDACC__
// An operand as the model names it.
constexpr cuda_model::Product product_of(Operand type) {
  constexpr cuda_model::Product kProducts[] = {cuda_model::Product::f16, cuda_model::Product::bf16, cuda_model::Product::tf32,
                                               cuda_model::Product::s8,  cuda_model::Product::u8,   cuda_model::Product::e4m3,
                                               cuda_model::Product::e5m2};
  return kProducts[static_cast<int>(type)];
}
#endif

// sums[4] += 16 rows of A * 8 columns of B, 32 bytes of k.
template <Operand kType>
SPARKLE_DEVICE void multiply(typename SumOf<kType>::Type (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#ifdef __CUDACC__
#define SPARKLE_MMA(instruction, constraint)                                                        \
  asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"       \
               : constraint(sums[0]), constraint(sums[1]), constraint(sums[2]), constraint(sums[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (kType == Operand::f16) {
    SPARKLE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "+f");
  } else if constexpr (kType == Operand::bf16) {
    SPARKLE_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "+f");
  } else if constexpr (kType == Operand::tf32) {
    SPARKLE_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "+f");
  } else if constexpr (kType == Operand::i8) {
    SPARKLE_MMA("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "+r");
  } else {
    static_assert(kType == Operand::i8, "no such instruction is written out here");
  }
#undef SPARKLE_MMA
#else
  const uint32_t b[2] = {b0, b1};
  cuda_model::mma(product_of(kType), sums, a, b);
#endif
}

// The bits of a float rounded to tf32, ties away from zero.
SPARKLE_DEVICE uint32_t as_tf32(uint32_t bits) {
#ifdef __CUDACC__
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
  return rounded;
#else
  return (bits & 0x7f800000u) == 0x7f800000u ? bits & ~0x1fffu : (bits + 0x1000u) & ~0x1fffu;
#endif
}

// a * b + c, rounded once.
SPARKLE_DEVICE float multiply_add(float a, float b, float c) {
#ifdef __CUDACC__
  return __fmaf_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}
// The larger one, or what is a number.
SPARKLE_DEVICE float larger_of(float a, float b) {
#ifdef __CUDACC__
  return fmaxf(a, b);
#else
  return std::fmax(a, b);
#endif
}
SPARKLE_DEVICE float smaller_of(float a, float b) {
#ifdef __CUDACC__
  return fminf(a, b);
#else
  return std::fmin(a, b);
#endif
}
// To nearest even.
SPARKLE_DEVICE int32_t to_nearest(float value) {
#ifdef __CUDACC__
  return __float2int_rn(value);
#else
  return static_cast<int32_t>(std::nearbyint(value));
#endif
}
// 2^x and 1/x, off by two units in the last place at most; what is below normal numbers is zero.
SPARKLE_DEVICE float exp2_of(float x) {
#ifdef __CUDACC__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}
SPARKLE_DEVICE float reciprocal_of(float x) {
#ifdef __CUDACC__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}

// Plus the four signed bytes.
SPARKLE_DEVICE int32_t sum_of_bytes(uint32_t bytes, int32_t sum) {
#ifdef __CUDACC__
  return __dp4a(static_cast<int>(bytes), 0x01010101, sum);
#else
  for (int i = 0; i < 4; ++i) sum += static_cast<int8_t>(bytes >> (8 * i));
  return sum;
#endif
}
// The same of unsigned ones.
SPARKLE_DEVICE int32_t sum_of_unsigned_bytes(uint32_t bytes, int32_t sum) {
#ifdef __CUDACC__
  return static_cast<int32_t>(__dp4a(bytes, 0x01010101u, static_cast<uint32_t>(sum)));
#else
  for (int i = 0; i < 4; ++i) sum += static_cast<uint8_t>(bytes >> (8 * i));
  return sum;
#endif
}
SPARKLE_DEVICE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }
SPARKLE_DEVICE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
SPARKLE_DEVICE uint16_t half_of(float value) {
#ifdef __CUDACC__
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  return float_to_half(value);
#endif
}
SPARKLE_DEVICE float float_of_half(uint16_t bits) {
#ifdef __CUDACC__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  return half_to_float(bits);
#endif
}
SPARKLE_DEVICE uint16_t bfloat_of(float value) {
#ifdef __CUDACC__
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  return float_to_bfloat16(value);
#endif
}
SPARKLE_DEVICE float float_of_bfloat(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }
// Two at once, the first in the lower half; kRelu: what is negative is 0, what is no number stays none.
template <bool kRelu = false>
SPARKLE_DEVICE uint32_t halfs_of(float low, float high) {
#ifdef __CUDACC__
  uint32_t bits;
  if constexpr (kRelu) {
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
#else
  if (kRelu) low = low < 0 ? 0 : low, high = high < 0 ? 0 : high;
  return half_of(low) | static_cast<uint32_t>(half_of(high)) << 16;
#endif
}
template <bool kRelu = false>
SPARKLE_DEVICE uint32_t bfloats_of(float low, float high) {
#ifdef __CUDACC__
  uint32_t bits;
  if constexpr (kRelu) {
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
#else
  if (kRelu) low = low < 0 ? 0 : low, high = high < 0 ? 0 : high;
  return bfloat_of(low) | static_cast<uint32_t>(bfloat_of(high)) << 16;
#endif
}

}  // namespace sparkle::cuda
