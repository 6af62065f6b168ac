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

enum class Bias { none, constant, row };

template <bool kScale, Bias kBias>
void apply(const ApplyArguments& a) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V mean = hn::Set(d, a.mean), factor = hn::Set(d, a.factor), constant = hn::Set(d, a.bias_value);
  const auto result = [&](V v, V s, V b) HWY_ATTR {
    v = hn::Sub(v, mean);
    if constexpr (kScale) v = hn::Mul(v, factor);
    const V by = kScale ? s : factor;
    return kBias == Bias::none ? hn::Mul(v, by) : hn::MulAdd(v, by, kBias == Bias::row ? b : constant);
  };
  // Stores of vectors may lie anywhere, so what is read through the reference would be read again after each.
  const float *x = a.x, *scale = a.scale, *bias = a.bias;
  float* y = a.y;
  const size_t count = a.count;
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V v = hn::LoadU(d, x + i);
    const V s = kScale ? hn::LoadU(d, scale + i) : v, b = kBias == Bias::row ? hn::LoadU(d, bias + i) : v;
    hn::StoreU(result(v, s, b), d, y + i);
  }
  const auto left = static_cast<int64_t>(count - i);
  if (left > 0) {
    const V v = load_lanes(d, x + i, left);
    const V s = kScale ? load_lanes(d, scale + i, left) : v;
    const V b = kBias == Bias::row ? load_lanes(d, bias + i, left) : v;
    store_lanes(result(v, s, b), d, y + i, left);
  }
}

template <bool kScale>
void apply_scale(const ApplyArguments& a) {
  if (a.bias) return apply<kScale, Bias::row>(a);
  if (a.has_bias_value) return apply<kScale, Bias::constant>(a);
  apply<kScale, Bias::none>(a);
}

void normalize_apply(const ApplyArguments& a) { return a.scale ? apply_scale<true>(a) : apply_scale<false>(a); }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
ApplyRow apply_row(std::string_view unit) { return SPARKLE_PICK(normalize_apply, unit); }
}  // namespace sparkle::cpu
#endif
