// The micro-kernel on 8-bit integers, for the unit SPARKLE_UNIT of dot_units.h: rows x vectors of 32-bit sums in registers;
// each step of four k loads `vectors` of weights and broadcasts four bytes per row. Included once per unit inside its region.

template <int kRows, int kVectors>
void integer_tile(const IntegerTileCall& call) {
  using U = SPARKLE_UNIT;
  using V = U::V;
  constexpr int kStep = U::kLanes * 4;
  V sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = U::zero();

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

  const V zero = U::splat(call.y_zero);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * U::kLanes, count = call.columns - column;
    const V correction = U::load(call.correction + column);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      V total = U::add(U::add(sum[r][v], correction), U::splat(call.row_correction[r]));
      if (call.b_zero) total = U::sub(total, U::mul(U::load(call.b_zero + column), U::splat(call.row_sum[r])));
      if (call.scale) {
        total = U::add(U::scaled(total, call.scale + column, call.low, call.high), zero);
        U::store_bytes(total, static_cast<uint8_t*>(call.y[r]) + column, count);
      } else {
        U::store_words(total, static_cast<int32_t*>(call.y[r]) + column, count);
      }
    }
  }
}

inline int32_t integer_row_sum(const uint8_t* a, const GemmRun* runs, int64_t run_count) {
#if SPARKLE_X86
  using U = SPARKLE_UNIT;
  constexpr int64_t kStep = U::kLanes * 4;
  int8_t ones[kStep];
  std::memset(ones, 1, sizeof ones);
  const typename U::Right one = U::right(ones);
  typename U::V sum = U::zero();
  // Short runs, and what is left of long ones: sums of absolute differences from zero.
  __m128i rest = _mm_setzero_si128();
  const __m128i nothing = _mm_setzero_si128();
  for (int64_t i = 0; i < run_count; ++i) {
    const uint8_t* from = a + runs[i].a;
    int64_t at = 0;
    for (; at + kStep <= runs[i].length; at += kStep)
      sum = U::dot(sum, U::left_lanes(U::load(reinterpret_cast<const int32_t*>(from + at))), one);
    for (; at + 16 <= runs[i].length; at += 16)
      rest = _mm_add_epi32(rest, _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)), nothing));
    for (; at < runs[i].length; at += 4) {
      int32_t four;
      std::memcpy(&four, from + at, 4);
      rest = _mm_add_epi32(rest, _mm_sad_epu8(_mm_cvtsi32_si128(four), nothing));
    }
  }
  int32_t lanes[U::kLanes];
  U::store_words(sum, lanes, U::kLanes);
  int32_t total = _mm_cvtsi128_si32(rest) + _mm_cvtsi128_si32(_mm_unpackhi_epi64(rest, rest));
  for (int32_t lane : lanes) total += lane;
#else
  int32_t total = 0;
  for (int64_t i = 0; i < run_count; ++i)
    for (int64_t at = 0; at < runs[i].length; ++at) total += a[runs[i].a + at];
#endif
  return total;
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
  kernels.row_sum = integer_row_sum;
  kernels.signed_left = SPARKLE_UNIT::kSignedLeft;
  kernels.max_rows = SPARKLE_MOST_ROWS;
  kernels.max_vectors = SPARKLE_UNIT::kRegisters >= 32 ? 4 : 2;
  fill_integer_row<1>(kernels), fill_integer_row<2>(kernels), fill_integer_row<3>(kernels), fill_integer_row<4>(kernels);
  if constexpr (SPARKLE_MOST_ROWS > 4) fill_integer_row<5>(kernels), fill_integer_row<6>(kernels);
  return kernels;
}
