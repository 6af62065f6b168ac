// Transforms of 2, 3, 4, 5 and 8 points in registers, on vectors of real and imaginary parts. The inverse is the same with the
// two exchanged. Included once per CPU target by kernel files after simd.h, inside no namespace.
#if defined(SPARKLE_FFT_BUTTERFLIES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_FFT_BUTTERFLIES_INL_H
#undef SPARKLE_FFT_BUTTERFLIES_INL_H
#else
#define SPARKLE_FFT_BUTTERFLIES_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// (r, i) times the number (w[0], w[1]).
template <class D, class V>
HWY_INLINE void twist(D d, const float* HWY_RESTRICT w, V& r, V& i) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V wr = hn::Set(d, w[0]), wi = hn::Set(d, w[1]);
  const V real = hn::NegMulAdd(i, wi, hn::Mul(r, wr));
  i = hn::MulAdd(r, wi, hn::Mul(i, wr));
  r = real;
}

template <class V>
HWY_INLINE void dft2(V& ar, V& ai, V& br, V& bi) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V r = hn::Sub(ar, br), i = hn::Sub(ai, bi);
  ar = hn::Add(ar, br), ai = hn::Add(ai, bi);
  br = r, bi = i;
}

template <class D, class V>
HWY_INLINE void dft3(D d, V& ar, V& ai, V& br, V& bi, V& cr, V& ci) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V half = hn::Set(d, 0.5f), sine = hn::Set(d, 0.86602540378443865f);
  const V sr = hn::Add(br, cr), si = hn::Add(bi, ci), dr = hn::Sub(br, cr), di = hn::Sub(bi, ci);
  const V mr = hn::NegMulAdd(half, sr, ar), mi = hn::NegMulAdd(half, si, ai);
  ar = hn::Add(ar, sr), ai = hn::Add(ai, si);
  br = hn::MulAdd(sine, di, mr), bi = hn::NegMulAdd(sine, dr, mi);
  cr = hn::NegMulAdd(sine, di, mr), ci = hn::MulAdd(sine, dr, mi);
}

template <class V>
HWY_INLINE void dft4(V& ar, V& ai, V& br, V& bi, V& cr, V& ci, V& dr, V& di) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V pr = hn::Add(ar, cr), pi = hn::Add(ai, ci), qr = hn::Sub(ar, cr), qi = hn::Sub(ai, ci);
  const V sr = hn::Add(br, dr), si = hn::Add(bi, di), tr = hn::Sub(br, dr), ti = hn::Sub(bi, di);
  ar = hn::Add(pr, sr), ai = hn::Add(pi, si);
  br = hn::Add(qr, ti), bi = hn::Sub(qi, tr);
  cr = hn::Sub(pr, sr), ci = hn::Sub(pi, si);
  dr = hn::Sub(qr, ti), di = hn::Add(qi, tr);
}

template <class D, class V>
HWY_INLINE void dft5(D d, V& ar, V& ai, V& br, V& bi, V& cr, V& ci, V& dr, V& di, V& er, V& ei) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V c1 = hn::Set(d, 0.30901699437494742f), c2 = hn::Set(d, -0.80901699437494742f);
  const V s1 = hn::Set(d, 0.95105651629515357f), s2 = hn::Set(d, 0.58778525229247313f);
  const V pr = hn::Add(br, er), pi = hn::Add(bi, ei), ur = hn::Sub(br, er), ui = hn::Sub(bi, ei);
  const V qr = hn::Add(cr, dr), qi = hn::Add(ci, di), vr = hn::Sub(cr, dr), vi = hn::Sub(ci, di);
  const V mr = hn::MulAdd(c1, pr, hn::MulAdd(c2, qr, ar)), mi = hn::MulAdd(c1, pi, hn::MulAdd(c2, qi, ai));
  const V nr = hn::MulAdd(c2, pr, hn::MulAdd(c1, qr, ar)), ni = hn::MulAdd(c2, pi, hn::MulAdd(c1, qi, ai));
  ar = hn::Add(ar, hn::Add(pr, qr)), ai = hn::Add(ai, hn::Add(pi, qi));
  const V xr = hn::MulAdd(s1, ur, hn::Mul(s2, vr)), xi = hn::MulAdd(s1, ui, hn::Mul(s2, vi));
  const V yr = hn::NegMulAdd(s1, vr, hn::Mul(s2, ur)), yi = hn::NegMulAdd(s1, vi, hn::Mul(s2, ui));
  br = hn::Add(mr, xi), bi = hn::Sub(mi, xr);
  er = hn::Sub(mr, xi), ei = hn::Add(mi, xr);
  cr = hn::Add(nr, yi), ci = hn::Sub(ni, yr);
  dr = hn::Sub(nr, yi), di = hn::Add(ni, yr);
}

// a..h are points 0..7, before and after.
template <class D, class V>
HWY_INLINE void dft8(D d, V& ar, V& ai, V& br, V& bi, V& cr, V& ci, V& dr, V& di, V& er, V& ei, V& fr, V& fi, V& gr, V& gi,
                     V& hr, V& hi) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V root = hn::Set(d, 0.70710678118654752f);
  dft4(ar, ai, cr, ci, er, ei, gr, gi);  // even points: their frequencies 0..3 in a, c, e, g
  dft4(br, bi, dr, di, fr, fi, hr, hi);  // odd points: in b, d, f, h
  const V xr = hn::Add(dr, di), xi = hn::Sub(di, dr), yr = hn::Sub(hi, hr), yi = hn::Add(hr, hi);
  const V fre = fr;
  // Frequencies k and k + 4: even part plus and minus the odd one turned by k eighths.
  const V f0r = hn::Add(ar, br), f0i = hn::Add(ai, bi), f4r = hn::Sub(ar, br), f4i = hn::Sub(ai, bi);
  const V f1r = hn::MulAdd(root, xr, cr), f1i = hn::MulAdd(root, xi, ci);
  const V f5r = hn::NegMulAdd(root, xr, cr), f5i = hn::NegMulAdd(root, xi, ci);
  const V f2r = hn::Add(er, fi), f2i = hn::Sub(ei, fre), f6r = hn::Sub(er, fi), f6i = hn::Add(ei, fre);
  const V f3r = hn::MulAdd(root, yr, gr), f3i = hn::NegMulAdd(root, yi, gi);
  const V f7r = hn::NegMulAdd(root, yr, gr), f7i = hn::MulAdd(root, yi, gi);
  ar = f0r, ai = f0i, br = f1r, bi = f1i, cr = f2r, ci = f2i, dr = f3r, di = f3i;
  er = f4r, ei = f4i, fr = f5r, fi = f5i, gr = f6r, gi = f6i, hr = f7r, hi = f7i;
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
