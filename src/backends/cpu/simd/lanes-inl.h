// Loads and stores of the last, partly filled vector of a row, never touching memory beyond it. Included once per CPU target
// by kernel files after simd.h, inside no namespace.
#if defined(SPARKLE_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_LANES_INL_H
#undef SPARKLE_LANES_INL_H
#else
#define SPARKLE_LANES_INL_H
#endif

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
// Masked accesses that cannot fault exist here for 32-bit lanes; elsewhere the tail goes through a small buffer.
#undef SPARKLE_SAFE_MASKS
#define SPARKLE_SAFE_MASKS (HWY_TARGET == HWY_AVX2 || HWY_TARGET <= HWY_AVX3 || HWY_HAVE_SCALABLE)

// The first `count` of a vector's lanes, zeros above.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_lanes(D d, const float* from, int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
#if SPARKLE_SAFE_MASKS
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
#endif
}

template <class D>
HWY_INLINE void store_lanes(hwy::HWY_NAMESPACE::Vec<D> v, D d, float* to, int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
#if SPARKLE_SAFE_MASKS
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, to);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
#endif
}

// What was computed so far stays before what comes: compilers reorder the products of unrolled tiles until they run out of
// registers.
template <class V>
HWY_INLINE void keep_order(V& v) {
#if HWY_ARCH_X86
  __asm__ __volatile__("" : "+v"(v.raw));
#elif HWY_HAVE_SCALABLE
  __asm__ __volatile__("" : "+w"(v));
#elif HWY_ARCH_ARM
  __asm__ __volatile__("" : "+w"(v.raw));
#endif
}

// Whole vectors or, with kTail, `count` lanes.
template <bool kTail, class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_some(D d, const float* from, int64_t count) {
  if constexpr (kTail) {
    return load_lanes(d, from, count);
  } else {
    return hwy::HWY_NAMESPACE::LoadU(d, from);
  }
}
template <bool kTail, class D>
HWY_INLINE void store_some(hwy::HWY_NAMESPACE::Vec<D> v, D d, float* to, int64_t count) {
  if constexpr (kTail) {
    store_lanes(v, d, to, count);
  } else {
    hwy::HWY_NAMESPACE::StoreU(v, d, to);
  }
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
