// Exact dot products of four bytes per 32-bit lane, u8 by i8, on the x86 units that have them, behind one set of names: V (i32
// lanes), Left and Right (prepared operands), dot, and the steps of requantisation. "avx2-int16" does it by products of 16-bit
// pairs of the widened operands, so that no sum of two saturates as vpmaddubsw would.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cpu/simd/x86_target.h"

#if SPARKLE_X86
namespace sparkle::cpu {

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX512_VNNI)
struct Avx512Vnni {
  using V = __m512i;
  using F = __m512;
  using Left = __m512i;
  using Right = __m512i;
  static constexpr int kLanes = 16, kRegisters = 32;
  static constexpr bool kSignedLeft = false;

  static inline V zero() { return _mm512_setzero_si512(); }
  static inline V splat(int32_t v) { return _mm512_set1_epi32(v); }
  static inline V load(const int32_t* p) { return _mm512_loadu_si512(p); }
  static inline Left left(const uint8_t* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }
  static inline Right right(const int8_t* p) { return _mm512_loadu_si512(p); }
  static inline V dot(V sum, Left a, Right b) { return _mm512_dpbusd_epi32(sum, a, b); }
  static inline V add(V a, V b) { return _mm512_add_epi32(a, b); }
  static inline V sub(V a, V b) { return _mm512_sub_epi32(a, b); }
  static inline V mul(V a, V b) { return _mm512_mullo_epi32(a, b); }
  static inline V scaled(V sum, const float* scale, float low, float high) {
    const F v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(scale));
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(low)), _mm512_set1_ps(high)));
  }
  static inline void store_words(V v, int32_t* to, int64_t count) {
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(count >= 16 ? 0xffff : (1 << count) - 1), v);
  }
  static inline void store_bytes(V v, uint8_t* to, int64_t count) {
    if (count >= 16) return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(v));
    _mm_mask_storeu_epi8(to, static_cast<__mmask16>((1 << count) - 1), _mm512_cvtepi32_epi8(v));
  }
  // Whole vectors of values that fit 16 bits; their low bytes are stored, `zero` added.
  template <int kVectors>
  static inline void store_row(const V (&v)[kVectors], V zero, uint8_t* to) {
    if constexpr (kVectors == 4) {
      const V low = _mm512_set1_epi16(0xff), zeros = _mm512_packs_epi32(zero, zero);
      const V first = _mm512_and_si512(_mm512_add_epi16(_mm512_packs_epi32(v[0], v[1]), zeros), low);
      const V second = _mm512_and_si512(_mm512_add_epi16(_mm512_packs_epi32(v[2], v[3]), zeros), low);
      const V order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second)));
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) store_bytes(add(v[i], zero), to + i * kLanes, kLanes);
    }
  }
  static inline V sum_bytes(V sum, const uint8_t* p) {
    return _mm512_add_epi32(sum, _mm512_sad_epu8(_mm512_loadu_si512(p), _mm512_setzero_si512()));
  }
  static inline __m128i quarter(V v) {
    const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  }
};
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX2)
// What the two 256-bit units share.
struct Ymm {
  using V = __m256i;
  using F = __m256;
  static constexpr int kLanes = 8, kRegisters = 16;
  static constexpr bool kSignedLeft = false;

  static inline V zero() { return _mm256_setzero_si256(); }
  static inline V splat(int32_t v) { return _mm256_set1_epi32(v); }
  static inline V load(const int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static inline V four(const uint8_t* p) {
    int32_t bytes;
    std::memcpy(&bytes, p, 4);
    return _mm256_set1_epi32(bytes);
  }
  static inline V add(V a, V b) { return _mm256_add_epi32(a, b); }
  static inline V sub(V a, V b) { return _mm256_sub_epi32(a, b); }
  static inline V mul(V a, V b) { return _mm256_mullo_epi32(a, b); }
  static inline V scaled(V sum, const float* scale, float low, float high) {
    const F v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(scale));
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(low)), _mm256_set1_ps(high)));
  }
  static inline void store_words(V v, int32_t* to, int64_t count) {
    int32_t lanes[8];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(count >= 8 ? to : lanes), v);
    if (count < 8) std::memcpy(to, lanes, static_cast<size_t>(count) * 4);
  }
  static inline void store_bytes(V v, uint8_t* to, int64_t count) {
    const __m256i pick = _mm256_set1_epi32(0x0c080400);
    const __m256i packed = _mm256_shuffle_epi8(v, pick);  // four bytes at the bottom of each half
    const uint64_t low = static_cast<uint32_t>(_mm256_extract_epi32(packed, 0));
    const uint64_t high = static_cast<uint32_t>(_mm256_extract_epi32(packed, 4));
    const uint64_t bytes = low | high << 32;
    if (count >= 8) {  // a copy of known length is a store, not a call
      std::memcpy(to, &bytes, 8);
    } else {
      std::memcpy(to, &bytes, static_cast<size_t>(count));
    }
  }
  // Whole vectors of values that fit 16 bits; their low bytes are stored, `zero` added.
  template <int kVectors>
  static inline void store_row(const V (&v)[kVectors], V zero, uint8_t* to) {
    const V words = _mm256_packs_epi32(v[0], v[kVectors - 1]), zeros = _mm256_packs_epi32(zero, zero);
    const V low = _mm256_and_si256(_mm256_add_epi16(words, zeros), _mm256_set1_epi16(0xff));
    const V order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m128i bytes = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, low), order));
    if constexpr (kVectors == 2) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    } else {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), bytes);
    }
  }
  static inline V sum_bytes(V sum, const uint8_t* p) {
    const V bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_add_epi32(sum, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
  }
  static inline __m128i quarter(V v) { return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)); }
};

// Pairs along k: the left one broadcast from widened rows, the right one eight columns by two widened as they are loaded.
struct Avx2 : Ymm {
  static inline V left(const int16_t* p) {
    int32_t two;
    std::memcpy(&two, p, 4);
    return _mm256_set1_epi32(two);
  }
  static inline V right(const int8_t* p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static inline V dot(V sum, V a, V b) { return add(sum, _mm256_madd_epi16(a, b)); }
};
SPARKLE_X86_END

SPARKLE_X86_BEGIN(SPARKLE_FEATURES_AVX_VNNI)
struct AvxVnni : Ymm {
  using Left = V;
  using Right = V;
  static inline Left left(const uint8_t* p) { return four(p); }
  static inline Right right(const int8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static inline V dot(V sum, Left a, Right b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }
};
SPARKLE_X86_END

}  // namespace sparkle::cpu
#endif
