#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/normalize/apply_row.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/normalize/apply_row.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <bool kScale, bool kBias>
void apply(const float* x, float* y, size_t count, float mean_value, float factor_value, const float* scale,
           const float* bias) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V mean = hn::Set(d, mean_value), factor = hn::Set(d, factor_value);
  const auto result = [&](V v, V s, V b) HWY_ATTR {
    v = hn::Mul(hn::Sub(v, mean), factor);
    if constexpr (kScale && kBias) return hn::MulAdd(v, s, b);
    if constexpr (kScale) return hn::Mul(v, s);
    if constexpr (kBias) return hn::Add(v, b);
    return v;
  };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V v = hn::LoadU(d, x + i);
    const V s = kScale ? hn::LoadU(d, scale + i) : v, b = kBias ? hn::LoadU(d, bias + i) : v;
    hn::StoreU(result(v, s, b), d, y + i);
  }
  const auto left = static_cast<int64_t>(count - i);
  if (left > 0) {
    const V v = load_lanes(d, x + i, left);
    const V s = kScale ? load_lanes(d, scale + i, left) : v, b = kBias ? load_lanes(d, bias + i, left) : v;
    store_lanes(result(v, s, b), d, y + i, left);
  }
}

void normalize_apply(const float* x, float* y, size_t count, float mean, float factor, const float* scale, const float* bias) {
  if (scale && bias) return apply<true, true>(x, y, count, mean, factor, scale, bias);
  if (scale) return apply<true, false>(x, y, count, mean, factor, scale, bias);
  if (bias) return apply<false, true>(x, y, count, mean, factor, scale, bias);
  apply<false, false>(x, y, count, mean, factor, scale, bias);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
ApplyRow apply_row(std::string_view unit) { return SPARKLE_PICK(normalize_apply, unit); }
}  // namespace sparkle::cpu
#endif
