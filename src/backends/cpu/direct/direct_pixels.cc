// Pixels in the lanes: up to four maps times some vectors of outputs of a row as sums. Each step (a tap of a channel) loads the
// vectors of inputs unaligned and broadcasts a weight per map: 4 x 5 sums take 20 multiply-adds for 9 loads.
// Sums are named variables, not arrays: SVE vectors have no size.
#include <algorithm>
#include <cstring>

#include "backends/cpu/direct/direct_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/direct/direct_pixels.cc"
#include "backends/cpu/simd/simd.h"

#undef SPARKLE_PIXEL_VECTORS
#undef SPARKLE_PIXEL_TILE
#define SPARKLE_PIXEL_VECTORS(X, m) X(m, 0) X(m, 1) X(m, 2) X(m, 3) X(m, 4) X(m, 5) X(m, 6) X(m, 7) X(m, 8) X(m, 9)
#define SPARKLE_PIXEL_TILE(X) \
  SPARKLE_PIXEL_VECTORS(X, 0) SPARKLE_PIXEL_VECTORS(X, 1) SPARKLE_PIXEL_VECTORS(X, 2) SPARKLE_PIXEL_VECTORS(X, 3)

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// The sums of kMaps maps for one vector of pixels, a pixel's maps together.
template <int kMaps, class D, class V>
HWY_INLINE void store_maps(D d, V a, V b, V c, V e, float* to) {
  if constexpr (kMaps == 1) hn::StoreU(a, d, to);
  if constexpr (kMaps == 2) hn::StoreInterleaved2(a, b, d, to);
  if constexpr (kMaps == 3) hn::StoreInterleaved3(a, b, c, d, to);
  if constexpr (kMaps == 4) hn::StoreInterleaved4(a, b, c, e, d, to);
}

template <int kMaps, int kVectors>
void pixel_tiles(const DirectCall& call) {
  static_assert(kMaps * kVectors + (kMaps > 1 ? kVectors : 0) + 1 <= SPARKLE_REGISTERS - 1, "the tile spills");
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = kVectors * lanes;
  // Vector stores may alias the call: what the loops need is read before.
  const int64_t count = call.step_count, y_pixel = call.y_pixel;
  const int64_t* HWY_RESTRICT steps = call.steps;
  const float* x_tile = call.x;
  float* y = call.y;
  int64_t left = call.outputs;
  for (int64_t t = 0; t < call.tiles; ++t, left -= width, x_tile += call.x_tile, y += width * y_pixel) {
    const float* HWY_RESTRICT bias = call.bias;
#define SPARKLE_DECLARE(m, v) [[maybe_unused]] V sum_##m##_##v = hn::Set(d, bias[m < kMaps ? m : 0]);
    SPARKLE_PIXEL_TILE(SPARKLE_DECLARE)
#undef SPARKLE_DECLARE
    const float* HWY_RESTRICT w = call.weights;
    for (int64_t i = 0; i < count; ++i, w += kMaps) {
      const float* HWY_RESTRICT x = x_tile + steps[i];
#define SPARKLE_LOAD(m, v)  \
  [[maybe_unused]] V x_##v; \
  if constexpr (v < kVectors) x_##v = hn::LoadU(d, x + v * lanes);
      SPARKLE_PIXEL_VECTORS(SPARKLE_LOAD, 0)
#undef SPARKLE_LOAD
#define SPARKLE_MULTIPLY(m, v) \
  if constexpr (m < kMaps && v < kVectors) sum_##m##_##v = hn::MulAdd(weight, x_##v, sum_##m##_##v);
#define SPARKLE_MAP(m)                         \
  if constexpr (m < kMaps) {                   \
    const V weight = hn::Set(d, w[m]);         \
    SPARKLE_PIXEL_VECTORS(SPARKLE_MULTIPLY, m) \
  }
      SPARKLE_MAP(0)
      SPARKLE_MAP(1)
      SPARKLE_MAP(2)
      SPARKLE_MAP(3)
#undef SPARKLE_MAP
#undef SPARKLE_MULTIPLY
    }
    // The sum is the second argument: x86 then hands a NaN on.
    if (call.clamp_below) {
      const V low = hn::Set(d, call.low);
#define SPARKLE_BELOW(m, v) \
  if constexpr (m < kMaps && v < kVectors) sum_##m##_##v = hn::Max(low, sum_##m##_##v);
      SPARKLE_PIXEL_TILE(SPARKLE_BELOW)
#undef SPARKLE_BELOW
    }
    if (call.clamp_above) {
      const V high = hn::Set(d, call.high);
#define SPARKLE_ABOVE(m, v) \
  if constexpr (m < kMaps && v < kVectors) sum_##m##_##v = hn::Min(high, sum_##m##_##v);
      SPARKLE_PIXEL_TILE(SPARKLE_ABOVE)
#undef SPARKLE_ABOVE
    }
    // Maps that lie apart from each other's neighbours and the last, partly filled vectors go through the L1.
    HWY_ALIGN float apart[kMaps * kVectors * (HWY_MAX_BYTES / sizeof(float))];
    const bool together = y_pixel == kMaps && left >= width;
    float* HWY_RESTRICT to = together ? y : apart;
#define SPARKLE_STORE(m, v) \
  if constexpr (v < kVectors) store_maps<kMaps>(d, sum_0_##v, sum_1_##v, sum_2_##v, sum_3_##v, to + v * kMaps * lanes);
    SPARKLE_PIXEL_VECTORS(SPARKLE_STORE, 0)
#undef SPARKLE_STORE
    if (together) continue;
    const int64_t outputs = left < width ? left : width;
    for (int64_t i = 0; i < outputs; ++i) std::memcpy(y + i * y_pixel, apart + i * kMaps, kMaps * sizeof(float));
  }
}

template <int kMaps, int kVectors>
void fill_pixel_maps(DirectKernels& kernels) {
  constexpr bool kMany = SPARKLE_REGISTERS >= 32;
  constexpr int kMost = kMaps == 1   ? (kMany ? 10 : 8)
                        : kMaps == 2 ? (kMany ? 8 : 4)
                        : kMaps == 3 ? (kMany ? 6 : 3)
                        : kMany      ? 5
                                     : 2;
  if constexpr (kVectors <= kMost) {
    kernels.pixels[kMaps - 1][kVectors - 1] = pixel_tiles<kMaps, kVectors>;
    fill_pixel_maps<kMaps, kVectors + 1>(kernels);
  }
}

void fill_pixels(DirectKernels& kernels) {
  fill_pixel_maps<1, 1>(kernels), fill_pixel_maps<2, 1>(kernels);
  fill_pixel_maps<3, 1>(kernels), fill_pixel_maps<4, 1>(kernels);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
DirectFill direct_pixels_of(std::string_view unit) { return SPARKLE_PICK(fill_pixels, unit); }
}  // namespace sparkle::cpu
#endif
