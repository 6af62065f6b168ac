// What a pooling does with an element and with the result, one struct per kind of pool, compiled once per target.
#if defined(SPARKLE_POOL_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_POOL_STEPS_INL_H
#undef SPARKLE_POOL_STEPS_INL_H
#else
#define SPARKLE_POOL_STEPS_INL_H
#endif

#include <limits>

#include "backends/cpu/pool/pool_call.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace pool {
namespace hn = hwy::HWY_NAMESPACE;

// Planes ask in parts: `only` the first element, others added, sums of elements joined, and the root or the share of all.
// A NaN among the elements stays, wherever it stands.
struct Maximum {
  static constexpr bool kShares = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> start(D d) {
    return hn::Set(d, -std::numeric_limits<float>::infinity());
  }
  template <class V>
  static HWY_INLINE V add(V sum, V v) {
#if HWY_ARCH_X86
    // The maximum gives its second operand where either is NaN: the sum's stays, the element's is put in.
    return hn::IfThenElse(hn::IsNaN(v), v, hn::Max(v, sum));
#else
    return hn::IfThenElse(hn::Or(hn::Gt(v, sum), hn::IsNaN(v)), v, sum);
#endif
  }
  template <class V>
  static HWY_INLINE V only(V v) {
    return v;
  }
  template <class V>
  static HWY_INLINE V join(V a, V b) {
    return add(a, b);
  }
  template <class V>
  static HWY_INLINE V root(V sum) {
    return sum;
  }
  template <class D, class V>
  static HWY_INLINE V finish(D, V sum, const PoolCall&, float, int64_t) {
    return sum;
  }
};

struct Mean {
  static constexpr bool kShares = true;
  template <class D>
  static HWY_INLINE hn::Vec<D> start(D d) {
    return hn::Zero(d);
  }
  template <class V>
  static HWY_INLINE V add(V sum, V v) {
    return hn::Add(sum, v);
  }
  template <class V>
  static HWY_INLINE V only(V v) {
    return v;
  }
  template <class V>
  static HWY_INLINE V join(V a, V b) {
    return hn::Add(a, b);
  }
  template <class V>
  static HWY_INLINE V root(V sum) {
    return sum;
  }
  // Nothing counted: 0/0, not a number.
  template <class D, class V>
  static HWY_INLINE V finish(D d, V sum, const PoolCall& call, float counted, int64_t q) {
    return hn::Div(sum, hn::Set(d, counted * call.counted_columns[static_cast<size_t>(q)]));
  }
};

struct SumOfSizes : Mean {  // lp with p = 1
  static constexpr bool kShares = false;
  template <class V>
  static HWY_INLINE V only(V v) {
    return hn::Abs(v);
  }
  template <class V>
  static HWY_INLINE V add(V sum, V v) {
    return hn::Add(sum, hn::Abs(v));
  }
  template <class D, class V>
  static HWY_INLINE V finish(D, V sum, const PoolCall&, float, int64_t) {
    return sum;
  }
};

struct RootOfSquares : Mean {  // lp with p = 2
  static constexpr bool kShares = false;
  template <class V>
  static HWY_INLINE V only(V v) {
    return hn::Mul(v, v);
  }
  template <class V>
  static HWY_INLINE V root(V sum) {
    return hn::Sqrt(sum);
  }
  template <class V>
  static HWY_INLINE V add(V sum, V v) {
    return hn::MulAdd(v, v, sum);
  }
  template <class D, class V>
  static HWY_INLINE V finish(D, V sum, const PoolCall&, float, int64_t) {
    return hn::Sqrt(sum);
  }
};

}  // namespace pool
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
