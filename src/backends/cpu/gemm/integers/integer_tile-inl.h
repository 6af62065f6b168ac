// The micro-kernel on 8-bit integers, for the unit SPARKLE_UNIT of dot_units.h: rows x vectors of 32-bit sums in registers;
// each step of four k loads `vectors` of weights and broadcasts four bytes per row. With SPARKLE_PAIRS steps are of two k, and
// rows were widened. Included once per unit inside its region.

#include "backends/cpu/gemm/integers/integer_finish-inl.h"

// Most tiles are whole, and packed as they are stored.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void finish_tile(const IntegerTileCall& call,
                                               const typename SPARKLE_UNIT::V (&sum)[kRows][kVectors]) {
  using V = SPARKLE_UNIT::V;
#if SPARKLE_X86
  if (call.scale && !call.b_zero && call.columns >= kVectors * SPARKLE_UNIT::kLanes) {
    const V zero = SPARKLE_UNIT::splat(call.y_zero);
    const int32_t* correction = call.correction;
    const float *scale = call.scale, low = call.low, high = call.high;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      finish_whole_row(sum[r], correction, call.row_correction[r], scale, low, high, zero, static_cast<uint8_t*>(call.row(r)));
    return;
  }
#endif
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    V row[kVectors];  // a copy: sums whose address is taken would not stay in registers
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = sum[r][v];
    finish_row<kVectors>(call, r, 0, row);
  }
}

template <int kRows, int kVectors>
void integer_tile(const IntegerTileCall& call) {
  using U = SPARKLE_UNIT;
  using V = U::V;
  V sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = U::zero();

#if SPARKLE_PAIRS
  const int16_t* a = call.wide;
  for (const GemmRun *run = call.runs, *end = run + call.run_count; run != end; ++run) {
    const int8_t* b = call.b + run->k * kVectors * U::kLanes;
    for (int64_t i = 0, length = run->length; i < length; i += 4, a += 4, b += kVectors * U::kLanes * 4) {
#pragma GCC unroll 2
      for (int pair = 0; pair < 2; ++pair) {
        V weights[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) weights[v] = U::right(b + (pair * kVectors + v) * U::kLanes * 2);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const V x = U::left(a + r * call.wide_stride + pair * 2);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) sum[r][v] = U::dot(sum[r][v], x, weights[v]);
        }
      }
    }
  }
#else
  constexpr int kStep = U::kLanes * 4;
  for (const GemmRun *run = call.runs, *end = run + call.run_count; run != end; ++run) {
    const int8_t* b = call.b + run->k * kVectors * U::kLanes;
    const uint8_t* a[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) a[r] = call.a[r] + run->a;
    for (int64_t i = 0, length = run->length; i < length; i += 4, b += kVectors * kStep) {
      typename U::Right weights[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) weights[v] = U::right(b + v * kStep);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const typename U::Left x = U::left(a[r] + i);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[r][v] = U::dot(sum[r][v], x, weights[v]);
      }
    }
  }
#endif
  finish_tile<kRows, kVectors>(call, sum);
}

// Sums of absolute differences from zero, the widest that fit first.
[[gnu::always_inline]] inline int32_t integer_row_sum(const uint8_t* a, const GemmRun* runs, int64_t run_count) {
#if SPARKLE_X86
  using U = SPARKLE_UNIT;
  constexpr int64_t kStep = U::kLanes * 4;
  typename U::V sum = U::zero();
  __m128i rest = _mm_setzero_si128();
  const __m128i nothing = _mm_setzero_si128();
  for (int64_t i = 0; i < run_count; ++i) {
    const uint8_t *from = a + runs[i].a, *end = from + runs[i].length;
    for (; end - from >= kStep; from += kStep) sum = U::sum_bytes(sum, from);
    for (; end - from >= 16; from += 16)
      rest = _mm_add_epi32(rest, _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), nothing));
    if (end - from >= 8) {
      rest = _mm_add_epi32(rest, _mm_sad_epu8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), nothing));
      from += 8;
    }
    if (from < end) {
      int32_t four;
      std::memcpy(&four, from, 4);
      rest = _mm_add_epi32(rest, _mm_sad_epu8(_mm_cvtsi32_si128(four), nothing));
    }
  }
  rest = _mm_add_epi32(rest, U::quarter(sum));
  return _mm_cvtsi128_si32(rest) + _mm_cvtsi128_si32(_mm_unpackhi_epi64(rest, rest));
#else
  int32_t total = 0;
  for (int64_t i = 0; i < run_count; ++i)
    for (int64_t at = 0; at < runs[i].length; ++at) total += a[runs[i].a + at];
  return total;
#endif
}

#if SPARKLE_PAIRS
[[gnu::always_inline]] inline void integer_widen_row(const uint8_t* a, const GemmRun* runs, int64_t run_count, int16_t* to) {
  for (int64_t i = 0; i < run_count; ++i) {
    const uint8_t *from = a + runs[i].a, *end = from + runs[i].length;
    for (; end - from >= 16; from += 16, to += 16)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                          _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    if (end - from >= 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                       _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
      from += 8, to += 8;
    }
    if (from < end) {
      int32_t four;
      std::memcpy(&four, from, 4);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
      to += 4;
    }
  }
}
inline void integer_widen(const IntegerTileCall& call, int rows, int16_t* to) {
  for (int r = 0; r < rows; ++r) integer_widen_row(call.a[r], call.runs, call.run_count, to + r * call.wide_stride);
}
#endif

inline void integer_row_sums(IntegerTileCall& call, int rows) {
  for (int r = 0; r < rows; ++r) call.row_sum[r] = integer_row_sum(call.a[r], call.runs, call.run_count);
}

// Rows and vectors that leave a register for the pixel.
template <int kRows>
void fill_integer_row(IntegerTileKernels& kernels) {
  kernels.tile[kRows - 1][0] = integer_tile<kRows, 1>;
  kernels.tile[kRows - 1][1] = integer_tile<kRows, 2>;
  if constexpr (SPARKLE_UNIT::kRegisters >= 32) {
    kernels.tile[kRows - 1][2] = integer_tile<kRows, 3>;
    kernels.tile[kRows - 1][3] = integer_tile<kRows, 4>;
  }
}

inline IntegerTileKernels make_integer_tiles() {
  IntegerTileKernels kernels;
  kernels.lanes = SPARKLE_UNIT::kLanes;
  kernels.row_sums = integer_row_sums;
#if SPARKLE_PAIRS
  kernels.group = 2;
  kernels.widen = integer_widen;
#endif
  kernels.signed_left = SPARKLE_UNIT::kSignedLeft;
  kernels.max_rows = SPARKLE_MOST_ROWS;
  kernels.max_vectors = SPARKLE_UNIT::kRegisters >= 32 ? 4 : 2;
  fill_integer_row<1>(kernels), fill_integer_row<2>(kernels), fill_integer_row<3>(kernels), fill_integer_row<4>(kernels);
  if constexpr (SPARKLE_MOST_ROWS > 4) fill_integer_row<5>(kernels), fill_integer_row<6>(kernels);
  return kernels;
}
