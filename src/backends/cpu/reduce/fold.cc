#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/fold.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/reduce/fold.h"
#include "backends/cpu/simd/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <Fold kFold, class D, class V>
HWY_INLINE V mapped(D d, V x, V shift) {
  if constexpr (kFold == Fold::sum_abs) return hn::Abs(x);
  if constexpr (kFold == Fold::sum_exp_shifted) return simd_math::Exp(d, hn::Sub(x, shift));
  if constexpr (kFold == Fold::sum_square_shifted) return hn::Sub(x, shift);
  return x;
}

// NaN wins against every number.
template <Fold kFold, class D, class V>
HWY_INLINE V joined(D, V total, V x) {
  if constexpr (kFold == Fold::max) return hn::IfThenElse(hn::Or(hn::Gt(x, total), hn::IsNaN(x)), x, total);
  if constexpr (kFold == Fold::min) return hn::IfThenElse(hn::Or(hn::Lt(x, total), hn::IsNaN(x)), x, total);
  if constexpr (kFold == Fold::product) return hn::Mul(total, x);
  return hn::Add(total, x);
}
template <Fold kFold, class D, class V>
HWY_INLINE V accumulated(D d, V total, V x, V shift) {
  const V m = mapped<kFold>(d, x, shift);
  if constexpr (kFold == Fold::sum_square || kFold == Fold::sum_square_shifted) return hn::MulAdd(m, m, total);
  return joined<kFold>(d, total, m);
}

template <Fold kFold>
constexpr float start() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return kFold == Fold::max ? -kInfinity : kFold == Fold::min ? kInfinity : kFold == Fold::product ? 1.0f : 0.0f;
}

// Four sums side by side hide the latency of the addition and shorten each chain.
template <Fold kFold>
float fold_row(const float* x, size_t count, float shift_value) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V shift = hn::Set(d, shift_value), empty = hn::Set(d, start<kFold>());
  V t0 = empty, t1 = empty, t2 = empty, t3 = empty;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    t0 = accumulated<kFold>(d, t0, hn::LoadU(d, x + i), shift);
    t1 = accumulated<kFold>(d, t1, hn::LoadU(d, x + i + lanes), shift);
    t2 = accumulated<kFold>(d, t2, hn::LoadU(d, x + i + 2 * lanes), shift);
    t3 = accumulated<kFold>(d, t3, hn::LoadU(d, x + i + 3 * lanes), shift);
  }
  for (; i + lanes <= count; i += lanes) t0 = accumulated<kFold>(d, t0, hn::LoadU(d, x + i), shift);
  if (i < count) {
    const auto mask = hn::FirstN(d, count - i);
    t1 = hn::IfThenElse(mask, accumulated<kFold>(d, t1, load_lanes(d, x + i, static_cast<int64_t>(count - i)), shift), t1);
  }
  const V total = joined<kFold>(d, joined<kFold>(d, t0, t1), joined<kFold>(d, t2, t3));
  if constexpr (kFold == Fold::max || kFold == Fold::min || kFold == Fold::product) {
    alignas(64) float values[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(total, d, values);
    float result = values[0];
    for (size_t k = 1; k < lanes; ++k) {
      if constexpr (kFold == Fold::product) result *= values[k];
      if constexpr (kFold == Fold::max) result = values[k] > result || values[k] != values[k] ? values[k] : result;
      if constexpr (kFold == Fold::min) result = values[k] < result || values[k] != values[k] ? values[k] : result;
    }
    return result;
  } else {
    return hn::GetLane(hn::SumOfLanes(d, total));
  }
}

// Totals of four vectors stay in registers over all rows.
template <Fold kFold>
void fold_columns(const ColumnCall& c) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const auto shift_at = [&](size_t at) HWY_ATTR { return c.shift ? hn::LoadU(d, c.shift + at) : hn::Zero(d); };
  size_t i = 0;
  for (; i + 4 * lanes <= c.columns; i += 4 * lanes) {
    float* total = c.total + i;
    V t0 = hn::LoadU(d, total), t1 = hn::LoadU(d, total + lanes);
    V t2 = hn::LoadU(d, total + 2 * lanes), t3 = hn::LoadU(d, total + 3 * lanes);
    const V s0 = shift_at(i), s1 = shift_at(i + lanes), s2 = shift_at(i + 2 * lanes), s3 = shift_at(i + 3 * lanes);
    const float* x = c.x + i;
    for (int64_t r = 0; r < c.rows; ++r, x += c.stride) {
      t0 = accumulated<kFold>(d, t0, hn::LoadU(d, x), s0);
      t1 = accumulated<kFold>(d, t1, hn::LoadU(d, x + lanes), s1);
      t2 = accumulated<kFold>(d, t2, hn::LoadU(d, x + 2 * lanes), s2);
      t3 = accumulated<kFold>(d, t3, hn::LoadU(d, x + 3 * lanes), s3);
    }
    hn::StoreU(t0, d, total), hn::StoreU(t1, d, total + lanes);
    hn::StoreU(t2, d, total + 2 * lanes), hn::StoreU(t3, d, total + 3 * lanes);
  }
  for (; i + lanes <= c.columns; i += lanes) {
    V total = hn::LoadU(d, c.total + i);
    const V shift = shift_at(i);
    const float* x = c.x + i;
    for (int64_t r = 0; r < c.rows; ++r, x += c.stride) total = accumulated<kFold>(d, total, hn::LoadU(d, x), shift);
    hn::StoreU(total, d, c.total + i);
  }
  const auto left = static_cast<int64_t>(c.columns - i);
  if (left <= 0) return;
  const V shift = c.shift ? load_lanes(d, c.shift + i, left) : hn::Zero(d);
  V total = load_lanes(d, c.total + i, left);
  const float* x = c.x + i;
  for (int64_t r = 0; r < c.rows; ++r, x += c.stride) total = accumulated<kFold>(d, total, load_lanes(d, x, left), shift);
  store_lanes(total, d, c.total + i, left);
}

FoldFunctions find_fold(Fold fold) {
  switch (fold) {
#undef CASE
#define CASE(kind) \
  case Fold::kind: return {fold_row<Fold::kind>, fold_columns<Fold::kind>};
    CASE(sum) CASE(max) CASE(min) CASE(product) CASE(sum_abs) CASE(sum_square) CASE(sum_exp_shifted) CASE(sum_square_shifted)
#undef CASE
  }
  return {};
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

namespace sparkle::cpu {

FoldFunctions fold_functions(std::string_view unit, Fold fold) {
  const auto find = SPARKLE_PICK(find_fold, unit);
  return find ? find(fold) : FoldFunctions{};
}

double identity_of(Fold fold) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return fold == Fold::max ? -kInfinity : fold == Fold::min ? kInfinity : fold == Fold::product ? 1.0 : 0.0;
}

double combine(Fold fold, double a, double b) {
  switch (fold) {
    case Fold::max: return std::isnan(b) || b > a ? b : a;
    case Fold::min: return std::isnan(b) || b < a ? b : a;
    case Fold::product: return a * b;
    default: return a + b;
  }
}

}  // namespace sparkle::cpu
#endif
