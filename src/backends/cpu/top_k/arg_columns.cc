// Floats become signed integers that rank as they do (families/top_k/rank_key.h has them unsigned); the best of each column and
// its row stay in registers over all rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/top_k/arg_columns.cc"
#include "backends/cpu/top_k/arg_columns.h"

#include <limits>

#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// Zeros of both signs are equal, and so are all that are no numbers.
template <bool kLargest, class D, class VI>
HWY_INLINE VI ranked(D d, const float* x, VI nan_rank) {
  const hn::RebindToSigned<D> di;
  const auto value = hn::LoadU(d, x);
  const auto bits = hn::BitCast(di, value), sign = hn::BroadcastSignBit(bits);
  // 0 - size where the sign is set: the bits but the sign inverted, and one more.
  const auto rank = hn::Sub(hn::Xor(bits, hn::And(sign, hn::Set(di, std::numeric_limits<int32_t>::max()))), sign);
  return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(value)), nan_rank, kLargest ? rank : hn::Not(rank));
}

template <class DI, class VI>
HWY_INLINE void store_wide(DI, VI v, int64_t* to) {
  const hn::Rebind<int32_t, hn::Repartition<int64_t, DI>> half;
  const hn::Repartition<int64_t, DI> wide;
  hn::StoreU(hn::PromoteTo(wide, hn::LowerHalf(half, v)), wide, to);
  hn::StoreU(hn::PromoteTo(wide, hn::UpperHalf(half, v)), wide, to + hn::Lanes(wide));
}

// kVectors vectors of columns from `at` on; named variables for vectors without a fixed length.
template <bool kLargest, bool kLast, int kVectors>
HWY_INLINE void best_rows(const ArgColumns& a, int64_t at) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto nan_rank =
      hn::Set(di, kLargest || a.nan_first ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min());
  const float* x = a.x + at;
#define SPARKLE_ARG_EACH(DO) DO(0) DO(1) DO(2) DO(3)
#define SPARKLE_ARG_START(u)                                                                          \
  auto best##u = u < kVectors ? ranked<kLargest>(d, x + (u % kVectors) * lanes, nan_rank) : nan_rank; \
  auto row##u = hn::Zero(di);
  SPARKLE_ARG_EACH(SPARKLE_ARG_START)
  for (int64_t i = 1; i < a.n; ++i) {
    x += a.stride;
    const auto here = hn::Set(di, static_cast<int32_t>(i));
#define SPARKLE_ARG_STEP(u)                                                                                                \
  if constexpr (u < kVectors) {                                                                                            \
    const auto rank = ranked<kLargest>(d, x + u * lanes, nan_rank);                                                        \
    row##u =                                                                                                               \
        kLast ? hn::IfThenElse(hn::Gt(best##u, rank), row##u, here) : hn::IfThenElse(hn::Gt(rank, best##u), here, row##u); \
    best##u = hn::Max(rank, best##u);                                                                                      \
  }
    SPARKLE_ARG_EACH(SPARKLE_ARG_STEP)
  }
#define SPARKLE_ARG_STORE(u) \
  if constexpr (u < kVectors) store_wide(di, row##u, a.indices + at + u * lanes);
  SPARKLE_ARG_EACH(SPARKLE_ARG_STORE)
#undef SPARKLE_ARG_START
#undef SPARKLE_ARG_STEP
#undef SPARKLE_ARG_STORE
#undef SPARKLE_ARG_EACH
}

// The last vector overlaps the one before it.
template <bool kLargest, bool kLast>
void best_of(const ArgColumns& a) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  int64_t at = 0;
  for (; at + 4 * lanes <= a.columns; at += 4 * lanes) best_rows<kLargest, kLast, 4>(a, at);
  for (; at + lanes <= a.columns; at += lanes) best_rows<kLargest, kLast, 1>(a, at);
  if (at < a.columns) best_rows<kLargest, kLast, 1>(a, a.columns - lanes);
}

void arg_columns(const ArgColumns& a) {
  if (a.largest) return a.last ? best_of<true, true>(a) : best_of<true, false>(a);
  a.last ? best_of<false, true>(a) : best_of<false, false>(a);
}
int64_t arg_lanes() { return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

ArgFunctions arg_functions(std::string_view unit) { return {SPARKLE_PICK(arg_columns, unit), SPARKLE_PICK(arg_lanes, unit)}; }

}  // namespace sparkle::cpu
#endif
