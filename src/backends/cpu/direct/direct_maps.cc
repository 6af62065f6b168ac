// Maps in up to four vectors, 24 sums (12 with 16 registers): the register tile of the gemm family, walked along a row of
// outputs within one call. Its inputs lie padded, so that every output of the row has the same taps. Sums are named variables,
// not arrays: SVE vectors have no size.
#include <algorithm>

#include "backends/cpu/direct/direct_rows.h"
#include "base/round_up.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/direct/direct_maps.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/simd/lanes-inl.h"

#undef SPARKLE_MAP_PIXELS
#undef SPARKLE_MAP_TILE
// clang-format off
#define SPARKLE_MAP_PIXELS(X)                                                     \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)                   \
  X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define SPARKLE_MAP_VECTORS(p, X) X(p, 0) X(p, 1) X(p, 2) X(p, 3)
#define SPARKLE_MAP_TILE(X)                                                       \
  SPARKLE_MAP_VECTORS(0, X) SPARKLE_MAP_VECTORS(1, X) SPARKLE_MAP_VECTORS(2, X)    \
  SPARKLE_MAP_VECTORS(3, X) SPARKLE_MAP_VECTORS(4, X) SPARKLE_MAP_VECTORS(5, X)    \
  SPARKLE_MAP_VECTORS(6, X) SPARKLE_MAP_VECTORS(7, X) SPARKLE_MAP_VECTORS(8, X)    \
  SPARKLE_MAP_VECTORS(9, X) SPARKLE_MAP_VECTORS(10, X) SPARKLE_MAP_VECTORS(11, X)  \
  SPARKLE_MAP_VECTORS(12, X) SPARKLE_MAP_VECTORS(13, X) SPARKLE_MAP_VECTORS(14, X) \
  SPARKLE_MAP_VECTORS(15, X) SPARKLE_MAP_VECTORS(16, X) SPARKLE_MAP_VECTORS(17, X) \
  SPARKLE_MAP_VECTORS(18, X) SPARKLE_MAP_VECTORS(19, X) SPARKLE_MAP_VECTORS(20, X) \
  SPARKLE_MAP_VECTORS(21, X) SPARKLE_MAP_VECTORS(22, X) SPARKLE_MAP_VECTORS(23, X)
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <int kVectors, int kPixels>
void map_tiles(const DirectCall& call) {
  static_assert(kPixels * kVectors + kVectors + 1 <= SPARKLE_REGISTERS - 1, "the tile spills");
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // Vector stores may alias the call: what the loops need is read before.
  const int64_t count = call.step_count, pixel = call.x_pixel, y_pixel = call.y_pixel;
  const int64_t* HWY_RESTRICT steps = call.steps;
  const float* x_tile = call.x;
  const bool whole = call.lanes == lanes;
  float* y = call.y;
  constexpr int kLine = 16;  // floats
  // A core waits for few lines at a time: some of them every few steps. Without any all steps are one part.
  constexpr int64_t kPart = 8;
  const int64_t part = call.fetch_lines > 0 ? kPart : count,
                fetch_a_part = divided(call.fetch_lines * kPart, std::max<int64_t>(1, count));
  for (int64_t t = 0; t < call.tiles; ++t, x_tile += call.x_tile, y += kPixels * y_pixel) {
    const float* HWY_RESTRICT bias = call.bias;
    [[maybe_unused]] const V bias_0 = hn::LoadU(d, bias), bias_1 = kVectors > 1 ? hn::LoadU(d, bias + lanes) : bias_0,
                             bias_2 = kVectors > 2 ? hn::LoadU(d, bias + 2 * lanes) : bias_0,
                             bias_3 = kVectors > 3 ? hn::LoadU(d, bias + 3 * lanes) : bias_0;
#define SPARKLE_DECLARE(p, v) [[maybe_unused]] V sum_##p##_##v = bias_##v;
    SPARKLE_MAP_TILE(SPARKLE_DECLARE)
#undef SPARKLE_DECLARE
    // The lines of y come while the sums are made, where ports for loads are free: single vectors of maps need them all.
#define SPARKLE_FETCH(p, v) \
  if constexpr (p < kPixels && v < kVectors && kVectors > 1) __builtin_prefetch(y + p * y_pixel + v * kLine, 1, 3);
    SPARKLE_MAP_TILE(SPARKLE_FETCH)
#undef SPARKLE_FETCH
    const float* HWY_RESTRICT b = call.weights;
    const float* fetch = call.fetch;
    if (HWY_UNLIKELY(fetch_a_part > 0)) fetch += t * call.x_tile;
    for (int64_t i = 0, end = std::min(count, part); i < count; end = std::min(count, end + part)) {
      if (HWY_UNLIKELY(fetch_a_part > 0))
        for (int64_t line = 0; line < fetch_a_part; ++line, fetch += kLine) __builtin_prefetch(fetch, 0, 2);
      for (; i < end; ++i, b += kVectors * lanes) {
        // Every third output has a pointer: the scaled index of x86 addresses its two neighbours too.
#define SPARKLE_POINTER(p)                                    \
  [[maybe_unused]] const float* HWY_RESTRICT x_##p = nullptr; \
  if constexpr (p % 3 == 0 && p < kPixels) x_##p = x_tile + steps[i] + p * pixel;
        SPARKLE_MAP_PIXELS(SPARKLE_POINTER)
#undef SPARKLE_POINTER
        [[maybe_unused]] V b0, b1, b2, b3;
        b0 = hn::LoadU(d, b);
        if constexpr (kVectors > 1) b1 = hn::LoadU(d, b + lanes);
        if constexpr (kVectors > 2) b2 = hn::LoadU(d, b + 2 * lanes);
        if constexpr (kVectors > 3) b3 = hn::LoadU(d, b + 3 * lanes);
#define SPARKLE_MULTIPLY(p, q)                                                \
  if constexpr (p < kPixels) {                                                \
    const V x = hn::Set(d, x_##q[(p - q) * pixel]);                           \
    sum_##p##_0 = hn::MulAdd(x, b0, sum_##p##_0);                             \
    if constexpr (kVectors > 1) sum_##p##_1 = hn::MulAdd(x, b1, sum_##p##_1); \
    if constexpr (kVectors > 2) sum_##p##_2 = hn::MulAdd(x, b2, sum_##p##_2); \
    if constexpr (kVectors > 3) sum_##p##_3 = hn::MulAdd(x, b3, sum_##p##_3); \
  }
#define SPARKLE_THREE(p, p1, p2) SPARKLE_MULTIPLY(p, p) SPARKLE_MULTIPLY(p1, p) SPARKLE_MULTIPLY(p2, p)
        SPARKLE_THREE(0, 1, 2)
        SPARKLE_THREE(3, 4, 5)
        SPARKLE_THREE(6, 7, 8)
        SPARKLE_THREE(9, 10, 11)
        SPARKLE_THREE(12, 13, 14)
        SPARKLE_THREE(15, 16, 17)
        SPARKLE_THREE(18, 19, 20)
        SPARKLE_THREE(21, 22, 23)
#undef SPARKLE_THREE
#undef SPARKLE_MULTIPLY
      }
    }
    // The sum is the second argument: x86 then hands a NaN on.
    if (call.clamp_below) {
      const V low = hn::Set(d, call.low);
#define SPARKLE_BELOW(p, v) \
  if constexpr (p < kPixels && v < kVectors) sum_##p##_##v = hn::Max(low, sum_##p##_##v);
      SPARKLE_MAP_TILE(SPARKLE_BELOW)
#undef SPARKLE_BELOW
    }
    if (call.clamp_above) {
      const V high = hn::Set(d, call.high);
#define SPARKLE_ABOVE(p, v) \
  if constexpr (p < kPixels && v < kVectors) sum_##p##_##v = hn::Min(high, sum_##p##_##v);
      SPARKLE_MAP_TILE(SPARKLE_ABOVE)
#undef SPARKLE_ABOVE
    }
#define SPARKLE_STORE(p, v)                                                   \
  if constexpr (p < kPixels && v < kVectors) {                                \
    if (v + 1 < kVectors || HWY_LIKELY(whole)) {                              \
      hn::StoreU(sum_##p##_##v, d, y + p * y_pixel + v * lanes);              \
    } else {                                                                  \
      store_lanes(sum_##p##_##v, d, y + p * y_pixel + v * lanes, call.lanes); \
    }                                                                         \
  }
    SPARKLE_MAP_TILE(SPARKLE_STORE)
#undef SPARKLE_STORE
  }
}

template <int kVectors, int kPixels>
void fill_map_pixels(DirectKernels& kernels) {
  constexpr int kMost = SPARKLE_REGISTERS >= 32 ? 24 / kVectors : 12 / kVectors;
  if constexpr (kPixels <= kMost) {
    kernels.maps[kVectors - 1][kPixels - 1] = map_tiles<kVectors, kPixels>;
    fill_map_pixels<kVectors, kPixels + 1>(kernels);
  }
}

void fill_maps(DirectKernels& kernels) {
  kernels.lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  kernels.map_vectors = SPARKLE_REGISTERS >= 32 ? 4 : 2;
  fill_map_pixels<1, 1>(kernels), fill_map_pixels<2, 1>(kernels);
  if constexpr (SPARKLE_REGISTERS >= 32) fill_map_pixels<3, 1>(kernels), fill_map_pixels<4, 1>(kernels);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
DirectFill direct_maps_of(std::string_view unit) { return SPARKLE_PICK(fill_maps, unit); }
}  // namespace sparkle::cpu
#endif
