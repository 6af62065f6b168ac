// Maps in one vector, sliding: the weights of a filter row stay in registers while its outputs pass; each input is broadcast
// once and multiplied with all of them: 17 outputs of 7 taps take 119 multiply-adds for 30 loads.
// Sums are named variables, not arrays: SVE vectors have no size.
#include "backends/cpu/direct/direct_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/direct/direct_slide.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/simd/lanes-inl.h"

#undef SPARKLE_SLIDE_PIXELS
#undef SPARKLE_SLIDE_COLUMNS
// clang-format off
#define SPARKLE_SLIDE_PIXELS(X, c)                                              \
  X(c, 0) X(c, 1) X(c, 2) X(c, 3) X(c, 4) X(c, 5) X(c, 6) X(c, 7) X(c, 8)       \
  X(c, 9) X(c, 10) X(c, 11) X(c, 12) X(c, 13) X(c, 14) X(c, 15) X(c, 16)
#define SPARKLE_SLIDE_COLUMNS(X)                                                \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)                 \
  X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22)
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <int kTap, class V>
HWY_INLINE V tap_of(V w0, V w1, V w2, V w3, V w4, V w5, V w6) {
  static_assert(kTap >= 0 && kTap < 7);
  if constexpr (kTap == 0) return w0;
  if constexpr (kTap == 1) return w1;
  if constexpr (kTap == 2) return w2;
  if constexpr (kTap == 3) return w3;
  if constexpr (kTap == 4) return w4;
  if constexpr (kTap == 5) return w5;
  if constexpr (kTap == 6) return w6;
}

template <int kTaps, int kPixels>
void slide_tiles(const DirectCall& call) {
  static_assert(kPixels + kTaps + 1 <= SPARKLE_REGISTERS - 1, "the tile spills");
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // Vector stores may alias the call: what the loops need is read before.
  const int64_t count = call.step_count, pixel = call.x_pixel, y_pixel = call.y_pixel;
  const int64_t* HWY_RESTRICT steps = call.steps;
  const float* x_tile = call.x;
  const bool whole = call.lanes == lanes;
  float* y = call.y;
  for (int64_t t = 0; t < call.tiles; ++t, x_tile += call.x_tile, y += kPixels * y_pixel) {
    const V bias = hn::LoadU(d, call.bias);
#define SPARKLE_DECLARE(c, p) [[maybe_unused]] V sum_##p = bias;
    SPARKLE_SLIDE_PIXELS(SPARKLE_DECLARE, 0)
#undef SPARKLE_DECLARE
    // The lines of y come while the sums are made.
#define SPARKLE_FETCH(c, p) \
  if constexpr (p < kPixels) __builtin_prefetch(y + p * y_pixel, 1, 3);
    SPARKLE_SLIDE_PIXELS(SPARKLE_FETCH, 0)
#undef SPARKLE_FETCH
    const float* HWY_RESTRICT w = call.weights;
    for (int64_t i = 0; i < count; ++i, w += kTaps * lanes) {
      const float* HWY_RESTRICT x = x_tile + steps[i];
      const V w0 = hn::LoadU(d, w), w1 = hn::LoadU(d, w + lanes), w2 = hn::LoadU(d, w + 2 * lanes);
      [[maybe_unused]] V w3 = w0, w4 = w0, w5 = w0, w6 = w0;
      if constexpr (kTaps > 3) w3 = hn::LoadU(d, w + 3 * lanes), w4 = hn::LoadU(d, w + 4 * lanes);
      if constexpr (kTaps > 5) w5 = hn::LoadU(d, w + 5 * lanes), w6 = hn::LoadU(d, w + 6 * lanes);
      // Output p sees the columns p to p + kTaps - 1.
#define SPARKLE_STEP(c, p)                                                           \
  if constexpr (p < kPixels && c - p >= 0 && c - p < kTaps) {                        \
    sum_##p = hn::MulAdd(value, tap_of<c - p>(w0, w1, w2, w3, w4, w5, w6), sum_##p); \
    keep_order(sum_##p);                                                             \
  }
      // Every third column moves the pointer: the scaled index of x86 addresses its two neighbours too. Each column's load
      // stays where it is.
#define SPARKLE_COLUMN(c)                              \
  if constexpr (c < kPixels + kTaps - 1) {             \
    __asm__ __volatile__("" ::: "memory");             \
    if constexpr (c > 0 && c % 3 == 0) x += 3 * pixel; \
    const V value = hn::Set(d, x[c % 3 * pixel]);      \
    SPARKLE_SLIDE_PIXELS(SPARKLE_STEP, c)              \
  }
      SPARKLE_SLIDE_COLUMNS(SPARKLE_COLUMN)
#undef SPARKLE_COLUMN
#undef SPARKLE_STEP
    }
    const V low = hn::Set(d, call.low), high = hn::Set(d, call.high);
    const bool below = call.clamp_below, above = call.clamp_above;
    // The sum is the second argument: x86 then hands a NaN on.
#define SPARKLE_STORE(c, p)                                 \
  if constexpr (p < kPixels) {                              \
    if (below) sum_##p = hn::Max(low, sum_##p);             \
    if (above) sum_##p = hn::Min(high, sum_##p);            \
    if (HWY_LIKELY(whole)) {                                \
      hn::StoreU(sum_##p, d, y + p * y_pixel);              \
    } else {                                                \
      store_lanes(sum_##p, d, y + p * y_pixel, call.lanes); \
    }                                                       \
  }
    SPARKLE_SLIDE_PIXELS(SPARKLE_STORE, 0)
#undef SPARKLE_STORE
  }
}

template <int kIndex, int kPixels>
void fill_slide_pixels(DirectKernels& kernels) {
  constexpr int kTaps = kSlideTaps[kIndex];
  // Of five taps and 16 outputs or more clang 19 keeps inputs on the stack.
  constexpr int kRoom = SPARKLE_REGISTERS - 2 - kTaps, kLongest = kTaps == 5 ? 15 : kMostSlidePixels;
  constexpr int kMost = kRoom < kLongest ? kRoom : kLongest;
  constexpr int kLeast = (kMost + 1) / 2;  // two tiles share what is too much for one
  if constexpr (kPixels == 1) {
    fill_slide_pixels<kIndex, kLeast>(kernels);
  } else if constexpr (kPixels <= kMost) {
    kernels.slide[kIndex][kPixels - 1] = slide_tiles<kTaps, kPixels>;
    fill_slide_pixels<kIndex, kPixels + 1>(kernels);
  }
}

void fill_slide(DirectKernels& kernels) {
  fill_slide_pixels<0, 1>(kernels), fill_slide_pixels<1, 1>(kernels), fill_slide_pixels<2, 1>(kernels);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
DirectFill direct_slide_of(std::string_view unit) { return SPARKLE_PICK(fill_slide, unit); }
}  // namespace sparkle::cpu
#endif
