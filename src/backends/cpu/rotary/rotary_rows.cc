#include "backends/cpu/rotary/rotary_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/rotary/rotary_rows.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/vector_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// first = c a - s b, second = s a + c b
template <class V>
HWY_INLINE void turn(V a, V b, V c, V s, V& first, V& second) {
  first = hn::NegMulAdd(s, b, hn::Mul(c, a));
  second = hn::MulAdd(s, a, hn::Mul(c, b));
}

void rotary_row(const RotaryRow& row) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float *x = row.x, *c = row.cosine, *s = row.sine;
  float* y = row.y;
  int64_t i = 0;
  V first, second;
  if (row.interleaved) {
    for (; i + lanes <= row.half; i += lanes) {
      V a, b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      turn(a, b, hn::LoadU(d, c + i), hn::LoadU(d, s + i), first, second);
      hn::StoreInterleaved2(first, second, d, y + 2 * i);
    }
    for (; i < row.half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = c[i] * a - s[i] * b;
      y[2 * i + 1] = s[i] * a + c[i] * b;
    }
  } else {
    const int64_t half = row.half;
    each_vector(d, half, [&](int64_t at, int64_t left) HWY_ATTR {
      turn(load_lanes(d, x + at, left), load_lanes(d, x + half + at, left), load_lanes(d, c + at, left),
           load_lanes(d, s + at, left), first, second);
      store_lanes(first, d, y + at, left);
      store_lanes(second, d, y + half + at, left);
    });
  }
  std::copy(x + 2 * row.half, x + row.width, y + 2 * row.half);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

RotaryFunction rotary_function(std::string_view unit) { return SPARKLE_PICK(rotary_row, unit); }

}  // namespace sparkle::cpu
#endif
