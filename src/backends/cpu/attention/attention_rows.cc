#include "backends/cpu/attention/attention_rows.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/attention_rows.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/simd_math-inl.h"
#include "backends/cpu/simd/vector_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// At least as large as both; what is no number wins, as it does in the sum.
template <class V>
HWY_INLINE V larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}

// The lanes [begin, end) of the vector that starts at `at`.
template <class D>
HWY_INLINE hn::Mask<D> lanes_between(D d, int64_t begin, int64_t end, int64_t at) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto clamped = [lanes](int64_t v) { return static_cast<size_t>(v < 0 ? 0 : v > lanes ? lanes : v); };
  return hn::AndNot(hn::FirstN(d, clamped(begin - at)), hn::FirstN(d, clamped(end - at)));
}

template <bool kShown>
float mask_scores(const ScoreRow& row) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V hidden = hn::Set(d, -std::numeric_limits<float>::infinity());
  const V cap = hn::Set(d, row.softcap), inverse_cap = hn::Set(d, row.softcap > 0 ? 1 / row.softcap : 0.0f);
  V largest = hidden;
  each_vector(d, row.count, [&](int64_t i, int64_t left) HWY_ATTR {
    V v = hn::LoadU(d, row.scores + i);
    if (kShown && row.raw) store_lanes(v, d, row.raw + i, left);
    if (row.softcap > 0) v = hn::Mul(cap, simd_math::Tanh(d, hn::Mul(v, inverse_cap)));
    if (kShown && row.capped) store_lanes(v, d, row.capped + i, left);
    if (row.mask) v = hn::Add(v, left == lanes ? hn::LoadU(d, row.mask + i) : load_lanes(d, row.mask + i, left));
    if (i < row.begin || i + lanes > row.end) v = hn::IfThenElse(lanes_between(d, row.begin, row.end, i), v, hidden);
    if (kShown && row.masked) store_lanes(v, d, row.masked + i, left);
    hn::StoreU(v, d, row.scores + i);
    largest = larger(v, largest);
  });
  // A NaN must come out whatever lane it is in; the maximum over lanes need not keep it.
  if (!hn::AllTrue(d, hn::Eq(largest, largest))) return std::numeric_limits<float>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

float mask_row(const ScoreRow& row) {
  return row.raw || row.capped || row.masked ? mask_scores<true>(row) : mask_scores<false>(row);
}

float exponentials(float* scores, int64_t count, float largest) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V top = hn::Set(d, largest);
  V s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const V e0 = simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, scores + i), top));
    const V e1 = simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, scores + i + lanes), top));
    hn::StoreU(e0, d, scores + i), hn::StoreU(e1, d, scores + i + lanes);
    s0 = hn::Add(s0, e0), s1 = hn::Add(s1, e1);
  }
  for (; i < count; i += lanes) {
    const auto left = static_cast<size_t>(count - i < lanes ? count - i : lanes);
    const V e = hn::IfThenElseZero(hn::FirstN(d, left), simd_math::ExpOfNegative(d, hn::Sub(hn::LoadU(d, scores + i), top)));
    hn::StoreU(e, d, scores + i);
    s0 = hn::Add(s0, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

void weights(float* scores, int64_t count, float largest, float factor) {
  const hn::ScalableTag<float> d;
  each_vector(d, count, [&](int64_t i, int64_t left) HWY_ATTR {
    const auto e = simd_math::ExpOfNegative(d, hn::Sub(load_lanes(d, scores + i, left), hn::Set(d, largest)));
    store_lanes(hn::Mul(e, hn::Set(d, factor)), d, scores + i, left);
  });
}

void scale_row(const float* from, float* to, int64_t count, float factor) {
  const hn::ScalableTag<float> d;
  each_vector(d, count, [&](int64_t i, int64_t left) HWY_ATTR {
    store_lanes(hn::Mul(load_lanes(d, from + i, left), hn::Set(d, factor)), d, to + i, left);
  });
}

AttentionFunctions find_attention() { return {mask_row, exponentials, weights, scale_row}; }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

AttentionFunctions attention_functions(std::string_view unit) {
  const auto find = SPARKLE_PICK(find_attention, unit);
  return find ? find() : AttentionFunctions{};
}

}  // namespace sparkle::cpu
#endif
