// One axis of the transforms, written out: even and odd parts of the points +a and -a are shared. `load(i)` gives a vector,
// `store(i, v)` takes one. Points as in families/winograd/winograd_transform.cc.
#if defined(SPARKLE_WINOGRAD_LINES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_WINOGRAD_LINES_INL_H_
#undef SPARKLE_WINOGRAD_LINES_INL_H_
#else
#define SPARKLE_WINOGRAD_LINES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// even + a * odd at point a, even - a * odd at -a.
template <class D, class V, class Store>
HWY_INLINE void store_pair(D d, int at, float a, V even, V odd, Store store) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V factor = hn::Set(d, a);
  store(at, hn::MulAdd(factor, odd, even));
  store(at + 1, hn::NegMulAdd(factor, odd, even));
}

// Inputs of a line to its points.
template <int kTile, class D, class Load, class Store>
HWY_INLINE void input_line(D d, Load load, Store store) {
  namespace hn = hwy::HWY_NAMESPACE;
  using V = hn::Vec<D>;
  if constexpr (kTile == 2) {
    const V x0 = load(0), x1 = load(1), x2 = load(2), x3 = load(3);
    store(0, hn::Sub(x2, x0));
    store(1, hn::Add(x2, x1));
    store(2, hn::Sub(x2, x1));
    store(3, hn::Sub(x3, x1));
  } else if constexpr (kTile == 4) {
    // a^2 of the pairs: 1/2 and 2.
    const V x0 = load(0), x1 = load(1), x2 = load(2), x3 = load(3), x4 = load(4), x5 = load(5);
    const V sum = hn::Set(d, 2.5f), two = hn::Set(d, 2.0f), half = hn::Set(d, 0.5f);
    store(0, hn::NegMulAdd(sum, x2, hn::Add(x0, x4)));
    store_pair(d, 1, 0.70710678118654752f, hn::NegMulAdd(two, x2, x4), hn::NegMulAdd(two, x1, x3), store);
    store_pair(d, 3, 1.41421356237309505f, hn::NegMulAdd(half, x2, x4), hn::NegMulAdd(half, x1, x3), store);
    store(5, hn::NegMulAdd(sum, x3, hn::Add(x1, x5)));
  } else {
    // a^2 of the pairs: 1, 4 and 1/4.
    const V x0 = load(0), x1 = load(1), x2 = load(2), x3 = load(3), x4 = load(4), x5 = load(5), x6 = load(6), x7 = load(7);
    const V sum = hn::Set(d, 5.25f), most = hn::Set(d, 4.25f), five = hn::Set(d, 5.0f), quarter = hn::Set(d, 0.25f),
            four = hn::Set(d, 4.0f), middle = hn::Set(d, 1.25f);
    store(0, hn::MulAdd(sum, hn::Sub(x2, x4), hn::Sub(x6, x0)));
    store_pair(d, 1, 1.0f, hn::NegMulAdd(most, x4, hn::Add(x6, x2)), hn::NegMulAdd(most, x3, hn::Add(x5, x1)), store);
    store_pair(d, 3, 2.0f, hn::MulAdd(quarter, x2, hn::NegMulAdd(middle, x4, x6)),
               hn::MulAdd(quarter, x1, hn::NegMulAdd(middle, x3, x5)), store);
    store_pair(d, 5, 0.5f, hn::MulAdd(four, x2, hn::NegMulAdd(five, x4, x6)), hn::MulAdd(four, x1, hn::NegMulAdd(five, x3, x5)),
               store);
    store(7, hn::MulAdd(sum, hn::Sub(x3, x5), hn::Sub(x7, x1)));
  }
}

// Points of a line to its outputs: output i is the sum over points of a^i times the product there; infinity adds to the last.
template <int kTile, class D, class Load, class Store>
HWY_INLINE void output_line(D d, Load load, Store store) {
  namespace hn = hwy::HWY_NAMESPACE;
  using V = hn::Vec<D>;
  const V m0 = load(0), m1 = load(1), m2 = load(2);
  const V even = hn::Add(m1, m2), odd = hn::Sub(m1, m2);
  if constexpr (kTile == 2) {
    store(0, hn::Add(m0, even));
    store(1, hn::Add(odd, load(3)));
  } else if constexpr (kTile == 4) {
    const V m3 = load(3), m4 = load(4), m5 = load(5);
    const V even2 = hn::Add(m3, m4), odd2 = hn::Sub(m3, m4);
    const auto set = [d](float value) HWY_ATTR { return hn::Set(d, value); };
    store(0, hn::Add(m0, hn::Add(even, even2)));
    store(1, hn::MulAdd(set(0.70710678118654752f), odd, hn::Mul(set(1.41421356237309505f), odd2)));
    store(2, hn::MulAdd(set(0.5f), even, hn::Add(even2, even2)));
    store(3, hn::MulAdd(set(0.35355339059327376f), odd, hn::MulAdd(set(2.82842712474619010f), odd2, m5)));
  } else {
    const V m3 = load(3), m4 = load(4), m5 = load(5), m6 = load(6), m7 = load(7);
    const V even2 = hn::Add(m3, m4), odd2 = hn::Sub(m3, m4), even3 = hn::Add(m5, m6), odd3 = hn::Sub(m5, m6);
    const auto set = [d](float value) HWY_ATTR { return hn::Set(d, value); };
    store(0, hn::Add(hn::Add(m0, even), hn::Add(even2, even3)));
    store(1, hn::MulAdd(set(2.0f), odd2, hn::MulAdd(set(0.5f), odd3, odd)));
    store(2, hn::MulAdd(set(4.0f), even2, hn::MulAdd(set(0.25f), even3, even)));
    store(3, hn::MulAdd(set(8.0f), odd2, hn::MulAdd(set(0.125f), odd3, odd)));
    store(4, hn::MulAdd(set(16.0f), even2, hn::MulAdd(set(0.0625f), even3, even)));
    store(5, hn::MulAdd(set(32.0f), odd2, hn::MulAdd(set(0.03125f), odd3, hn::Add(odd, m7))));
  }
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
