// From sums of 8-bit integers in registers to y, for the unit SPARKLE_UNIT of dot_units.h: corrections, scale, rounding,
// bounds. Included once per unit inside its region, by the micro-kernels of registers and of tiles.

// `kVectors` of sums of row r, from column `first` on, where anything may be: no scale, zero points of columns, columns that do
// not exist.
template <int kVectors, class Call>
[[gnu::noinline]] void finish_row(const Call& call, int r, int64_t first, const typename SPARKLE_UNIT::V* sum) {
  using U = SPARKLE_UNIT;
  using V = U::V;
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = first + v * U::kLanes, count = call.columns - column;
    if (count <= 0) return;
    V total = U::add(U::add(sum[v], U::load(call.correction + column)), U::splat(call.row_correction[r]));
    if (call.b_zero) total = U::sub(total, U::mul(U::load(call.b_zero + column), U::splat(call.row_sum[r])));
    if (call.scale) {
      total = U::add(U::scaled(total, call.scale + column, call.low, call.high), U::splat(call.y_zero));
      U::store_bytes(total, static_cast<uint8_t*>(call.row(r)) + column, count);
    } else {
      U::store_words(total, static_cast<int32_t*>(call.row(r)) + column, count);
    }
  }
}

#if SPARKLE_X86
// A row of which all columns exist, scaled, without zero points of columns.
template <int kVectors>
[[gnu::always_inline]] inline void finish_whole_row(const typename SPARKLE_UNIT::V (&sum)[kVectors], const int32_t* correction,
                                                    int32_t row_correction, const float* scale, float low, float high,
                                                    typename SPARKLE_UNIT::V zero, uint8_t* to) {
  using U = SPARKLE_UNIT;
  using V = U::V;
  V values[kVectors];
  const V row = U::splat(row_correction);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * U::kLanes;
    const V total = U::add(U::add(sum[v], U::load(correction + column)), row);
    values[v] = U::scaled(total, scale + column, low, high);
  }
  U::store_row(values, zero, to);
}
#endif
