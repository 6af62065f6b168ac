// The micro-kernel: rows x vectors of sums in registers, row pointers instead of an im2col buffer. Each step of k loads
// `vectors` of weights and broadcasts one element per row. Register tile 6x4 (32 registers) or 6x2 (16): the FMA units
// are busy 24 (12) issue slots per step while the load ports see 10 (8), and no compiler spills. Weights of 16 bits are
// widened as they are loaded. Compiled once per target.
// Sums are named variables, not arrays: SVE vectors have no size, and g++ keeps arrays in memory more readily.
#if defined(SPARKLE_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_GEMM_TILE_INL_H_
#undef SPARKLE_GEMM_TILE_INL_H_
#else
#define SPARKLE_GEMM_TILE_INL_H_
#endif

#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/simd.h"

#undef SPARKLE_FOR_ROWS
#undef SPARKLE_FOR_TILE
#define SPARKLE_FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
// clang-format off
#define SPARKLE_FOR_TILE(X)                                                                                                   \
  X(0, 0)                                                                                                                     \
  X(0, 1)                                                                                                                     \
  X(0, 2)                                                                                                                     \
  X(0, 3)                                                                                                                     \
  X(1, 0) X(1, 1) X(1, 2) X(1, 3) X(2, 0) X(2, 1) X(2, 2) X(2, 3) X(3, 0) X(3, 1) X(3, 2) X(3, 3) X(4, 0) X(4, 1) X(4, 2)     \
      X(4, 3) X(5, 0) X(5, 1) X(5, 2) X(5, 3) X(6, 0) X(6, 1) X(6, 2) X(6, 3) X(7, 0) X(7, 1) X(7, 2) X(7, 3) X(8, 0) X(8, 1) \
          X(8, 2) X(8, 3) X(9, 0) X(9, 1) X(9, 2) X(9, 3) X(10, 0) X(10, 1) X(10, 2) X(10, 3) X(11, 0) X(11, 1) X(11, 2)      \
              X(11, 3)
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// A bfloat16: the upper half of a float.
struct Bfloat {
  uint16_t bits;
};

template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_weights(D d, const float* HWY_RESTRICT from) {
  return hwy::HWY_NAMESPACE::LoadU(d, from);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_weights(D d, const hwy::float16_t* HWY_RESTRICT from) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), from));
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_weights(D d, const Bfloat* HWY_RESTRICT from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto bits = hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::Rebind<uint32_t, D>(), bits)));
}

template <int kRow>
HWY_INLINE float tall_row(const float* a0, const float* a3, const float* a6, const float* a9, int64_t pitch) {
  const float* a = kRow < 3 ? a0 : kRow < 6 ? a3 : kRow < 9 ? a6 : a9;
  return a[kRow % 3 * pitch];
}

// Small tiles are bound by their loads: a prefetch per step costs them 1-3 % (6x2 with AVX2, Zen 4, 2026-11).
constexpr bool fetches(int rows, int vectors) { return rows * vectors >= 18; }

// The lines that one row of the tile will add and write.
template <int kVectors>
HWY_INLINE void fetch_row(const TileCall& call, int row, int64_t lanes) {
  for (int v = 0; v < kVectors; ++v) {
    for (int i = 0; i < call.residuals; ++i) __builtin_prefetch(call.residual[i][row] + call.column + v * lanes, 0, 3);
    __builtin_prefetch(call.y[row] + call.column + v * lanes, 1, 3);
  }
}

// kNearest: the level of cache that is prefetched into. W: the type that weights are kept in.
template <int kRows, int kVectors, int kNearest, class W>
void tile(const TileCall& call) {
  namespace hn = hwy::HWY_NAMESPACE;
  static_assert(kRows * kVectors + kVectors + 1 <= SPARKLE_REGISTERS - 1, "the tile spills");
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
#define SPARKLE_DECLARE(r, v) [[maybe_unused]] V sum_##r##_##v = hn::Zero(d);
  SPARKLE_FOR_TILE(SPARKLE_DECLARE)
#undef SPARKLE_DECLARE

  if (!call.begin_at_zero) {
    const float* HWY_RESTRICT partial = call.partial;
#define SPARKLE_LOAD(r, v) \
  if constexpr (r < kRows && v < kVectors) sum_##r##_##v = hn::LoadU(d, partial + (r * kVectors + v) * lanes);
    SPARKLE_FOR_TILE(SPARKLE_LOAD)
#undef SPARKLE_LOAD
  }

  // Lines of residuals and y are asked for a row at a time along the sum: all at once they would fill the buffers for lines on
  // their way, and the weights would wait behind them.
  [[maybe_unused]] int ahead = 0;
  [[maybe_unused]] const char* prefetch = call.prefetch;
  [[maybe_unused]] const int64_t prefetch_step = call.prefetch_step;
  for (const GemmRun *run = call.runs, *end = run + call.run_count; run != end; ++run) {
    const W* HWY_RESTRICT b = static_cast<const W*>(call.b) + run->k * kVectors * lanes;
    const int64_t length = run->length;
    // Up to six rows have a pointer each. More of them lie at a constant pitch: every third has a pointer, which with the
    // scaled index of x86 addresses its two neighbours too.
    constexpr bool kTall = kRows > kMaxTileRows;
    [[maybe_unused]] const int64_t pitch = call.a_pitch;
#define SPARKLE_ROW(r)                                          \
  [[maybe_unused]] const float* HWY_RESTRICT a##r = nullptr;    \
  if constexpr (r < kRows && !kTall) a##r = call.a[r] + run->a; \
  if constexpr (r < kRows && kTall && r % 3 == 0) a##r = call.a[0] + r * pitch + run->a;
    SPARKLE_FOR_ROWS(SPARKLE_ROW)
#undef SPARKLE_ROW
    for (int64_t i = 0; i < length;) {
      int64_t stop = length;
      if (call.spacing > 0 && ahead < kRows) {
        stop = i + call.spacing < length ? i + call.spacing : length;
        fetch_row<kVectors>(call, ahead++, lanes);
      }
      for (; i < stop; ++i) {
        [[maybe_unused]] V b0, b1, b2, b3;
        b0 = load_weights(d, b);
        if constexpr (kVectors > 1) b1 = load_weights(d, b + lanes);
        if constexpr (kVectors > 2) b2 = load_weights(d, b + 2 * lanes);
        if constexpr (kVectors > 3) b3 = load_weights(d, b + 3 * lanes);
#define SPARKLE_MULTIPLY(r)                                                       \
  if constexpr (r < kRows) {                                                      \
    const V x = hn::Set(d, kTall ? tall_row<r>(a0, a3, a6, a9, pitch) : a##r[i]); \
    sum_##r##_0 = hn::MulAdd(x, b0, sum_##r##_0);                                 \
    if constexpr (kVectors > 1) sum_##r##_1 = hn::MulAdd(x, b1, sum_##r##_1);     \
    if constexpr (kVectors > 2) sum_##r##_2 = hn::MulAdd(x, b2, sum_##r##_2);     \
    if constexpr (kVectors > 3) sum_##r##_3 = hn::MulAdd(x, b3, sum_##r##_3);     \
  }
        SPARKLE_FOR_ROWS(SPARKLE_MULTIPLY)
#undef SPARKLE_MULTIPLY
        b += kVectors * lanes;
        if constexpr (kTall) ++a0, ++a3, ++a6;
        if constexpr (kRows > 9) ++a9;
        if constexpr (fetches(kRows, kVectors)) {
          __builtin_prefetch(prefetch, 0, kNearest == 1 ? 3 : 2);
          prefetch += prefetch_step;
        }
      }
    }
  }

  if (!call.finish) {
    float* HWY_RESTRICT partial = call.partial;
#define SPARKLE_STORE(r, v) \
  if constexpr (r < kRows && v < kVectors) hn::StoreU(sum_##r##_##v, d, partial + (r * kVectors + v) * lanes);
    SPARKLE_FOR_TILE(SPARKLE_STORE)
#undef SPARKLE_STORE
    return;
  }

  // Each part of the epilogue is one branch around the whole tile.
  if (call.scale) {
#define SPARKLE_SCALE(r, v) \
  if constexpr (r < kRows && v < kVectors) sum_##r##_##v = hn::Mul(sum_##r##_##v, hn::LoadU(d, call.scale + v * lanes));
    SPARKLE_FOR_TILE(SPARKLE_SCALE)
#undef SPARKLE_SCALE
  }
#define SPARKLE_BIAS(r, v) \
  if constexpr (r < kRows && v < kVectors) sum_##r##_##v = hn::Add(sum_##r##_##v, hn::LoadU(d, call.bias + v * lanes));
  SPARKLE_FOR_TILE(SPARKLE_BIAS)
#undef SPARKLE_BIAS
  for (int i = 0; i < call.residuals; ++i) {
    const float* const* residual = call.residual[i];
    const int64_t column = call.column;
#define SPARKLE_RESIDUAL(r, v)             \
  if constexpr (r < kRows && v < kVectors) \
    sum_##r##_##v = hn::Add(sum_##r##_##v, hn::LoadU(d, residual[r] + column + v * lanes));
    SPARKLE_FOR_TILE(SPARKLE_RESIDUAL)
#undef SPARKLE_RESIDUAL
  }
  // The sum is the second argument: x86 then hands a NaN on.
  if (call.clamp_below) {
    const V low = hn::Set(d, call.low);
#define SPARKLE_BELOW(r, v) \
  if constexpr (r < kRows && v < kVectors) sum_##r##_##v = hn::Max(low, sum_##r##_##v);
    SPARKLE_FOR_TILE(SPARKLE_BELOW)
#undef SPARKLE_BELOW
  }
  if (call.clamp_above) {
    const V high = hn::Set(d, call.high);
#define SPARKLE_ABOVE(r, v) \
  if constexpr (r < kRows && v < kVectors) sum_##r##_##v = hn::Min(high, sum_##r##_##v);
    SPARKLE_FOR_TILE(SPARKLE_ABOVE)
#undef SPARKLE_ABOVE
  }
  // Addresses first: a store of a vector may alias them, and each would be read again.
#define SPARKLE_ADDRESS(r)                             \
  [[maybe_unused]] float* HWY_RESTRICT y##r = nullptr; \
  if constexpr (r < kRows) y##r = call.y[r] + call.column;
  SPARKLE_FOR_ROWS(SPARKLE_ADDRESS)
#undef SPARKLE_ADDRESS
#define SPARKLE_STORE(r, v) \
  if constexpr (r < kRows && v < kVectors) hn::StoreU(sum_##r##_##v, d, y##r + v * lanes);
  SPARKLE_FOR_TILE(SPARKLE_STORE)
#undef SPARKLE_STORE
}

template <class W, int kRows, int kVectors>
void fill(TileKernels& kernels) {
  kernels.tile[0][kRows - 1][kVectors - 1] = tile<kRows, kVectors, 1, W>;
  kernels.tile[1][kRows - 1][kVectors - 1] = tile < kRows, kVectors, fetches(kRows, kVectors) ? 2 : 1, W > ;
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
