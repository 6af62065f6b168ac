// A row vector by vector: the loop around short kernels. Included once per CPU target by kernel files after simd.h, inside no
// namespace.
#if defined(SPARKLE_VECTOR_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_VECTOR_STEPS_INL_H
#undef SPARKLE_VECTOR_STEPS_INL_H
#else
#define SPARKLE_VECTOR_STEPS_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "backends/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
// step(first, left) for each vector of `count` elements: `left` of its lanes exist, all but in the last one.
template <class D, class Step>
HWY_INLINE void each_vector(D d, int64_t count, Step step) {
  const auto lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) step(i, count - i < lanes ? count - i : lanes);
}

// step(tail, first, left), where the type of `tail` says whether it is the last, partly filled vector (load_some, store_some).
template <class D, class Step>
HWY_INLINE void each_vector_and_tail(D d, int64_t count, Step step) {
  const auto lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) step(std::false_type{}, i, lanes);
  if (i < count) step(std::true_type{}, i, count - i);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
