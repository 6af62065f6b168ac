// Mathematics on fp32 vectors, compiled once per Highway target (include after backends/cpu/simd/simd.h, use inside
// namespace sparkle::cpu::HWY_NAMESPACE under #if SPARKLE_SIMD). Errors are against double precision; measured by
// simd_math_test.cc. NaN goes in, NaN comes out; results below 2^-126 of Exp are flushed to zero.
// Polynomials: own weighted minimax fits (Lawson iteration on 2000 Chebyshev nodes, weights for relative error of the result).
#if defined(SPARKLE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_SIMD_MATH_INL_H_
#undef SPARKLE_SIMD_MATH_INL_H_
#else
#define SPARKLE_SIMD_MATH_INL_H_
#endif

#include <cmath>
#include <limits>

#include <hwy/highway.h>

#include "backends/cpu/simd/lanes-inl.h"
#include "families/values/epilogue.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace simd_math {
namespace hn = hwy::HWY_NAMESPACE;

// v < low ? low : v and v > high ? high : v: unlike Min and Max these keep NaN. On x86 the maximum returns its second operand
// where one is NaN, so one instruction does it.
template <class V>
HWY_INLINE V at_least(V v, V low) {
#if HWY_ARCH_X86
  return hn::Max(low, v);
#else
  return hn::IfThenElse(hn::Lt(v, low), low, v);
#endif
}
template <class V>
HWY_INLINE V at_most(V v, V high) {
#if HWY_ARCH_X86
  return hn::Min(high, v);
#else
  return hn::IfThenElse(hn::Lt(high, v), high, v);
#endif
}

// c0 + c1 x + c2 x^2 ... by Horner's rule.
template <class D, class V>
HWY_INLINE V horner(D d, V, float c) {
  return hn::Set(d, c);
}
template <class D, class V, class... Cs>
HWY_INLINE V horner(D d, V x, float c, Cs... more) {
  return hn::MulAdd(horner(d, x, more...), x, hn::Set(d, c));
}
// `count` terms from `begin` on by Estrin's scheme: a third of the steps that wait for each other.
template <size_t begin, size_t count, class D, class V, size_t all>
HWY_INLINE V estrin(D d, const float (&terms)[all], V x, V x2, V x4, V x8) {
  if constexpr (count == 1) {
    return hn::Set(d, terms[begin]);
  } else if constexpr (count == 2) {
    return hn::MulAdd(x, hn::Set(d, terms[begin + 1]), hn::Set(d, terms[begin]));
  } else {
    constexpr size_t kLow = count > 8 ? 8 : count > 4 ? 4 : 2;
    const V power = kLow == 8 ? x8 : kLow == 4 ? x4 : x2;
    return hn::MulAdd(power, estrin<begin + kLow, count - kLow>(d, terms, x, x2, x4, x8),
                      estrin<begin, kLow>(d, terms, x, x2, x4, x8));
  }
}
// The same as horner(). Latencies are what bounds long functions of vectors of 8 (GELU by AVX2 1.03 -> 0.89 ns an element, Zen
// 4); short polynomials lose by more instructions.
template <class D, class V, class... Cs>
HWY_INLINE V polynomial(D d, V x, Cs... c) {
  if constexpr (sizeof...(c) < 9) {
    return horner(d, x, c...);
  } else {
    const float terms[] = {c...};
    const V x2 = hn::Mul(x, x), x4 = hn::Mul(x2, x2);
    return estrin<0, sizeof...(c)>(d, terms, x, x2, x4, hn::Mul(x4, x4));
  }
}

// A scalar function in double precision, lane by lane: for rare functions and rare arguments.
template <class D, class V, class F>
HWY_NOINLINE V by_lane(D d, F function, V x) {
  alignas(64) float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = static_cast<float>(function(static_cast<double>(lanes[i])));
  return hn::Load(d, lanes);
}

// Adding 1.5 * 2^23 rounds to an integer n and leaves n in the low bits of the sum; a shift by 23 makes it an exponent.
inline constexpr float kRound = 12582912.0f;
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kHalfLog2E = 7.213475108e-01f, kHalfLog2ERest = 9.62981495e-09f;  // log2(e) / 2 as a sum
inline constexpr float kLn2High = 0.693145752f, kLn2Low = 1.42860677e-6f;                // high: 15 bits, n * high is exact

// e^r for r in [-ln2 / 2, ln2 / 2] (|error| 3.4e-9).
template <class D, class V>
HWY_INLINE V exp_reduced(D d, V r) {
  return polynomial(d, r, 1.0f, 1.0f, 0.5f, 1.666651219e-01f, 4.166618735e-02f, 8.369598538e-03f, 1.395171741e-03f);
}
// x - n ln2.
template <class D, class V>
HWY_INLINE V exp_remainder(D d, V x, V n) {
  return hn::NegMulAdd(n, hn::Set(d, kLn2Low), hn::NegMulAdd(n, hn::Set(d, kLn2High), x));
}

// Whether p * 2^n is one instruction, for any n and with the right result where it leaves the range of floats.
#undef SPARKLE_HAS_SCALEF
#define SPARKLE_HAS_SCALEF (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)
#if SPARKLE_HAS_SCALEF
HWY_INLINE __m512 scale_by_power(__m512 p, __m512 n) { return _mm512_scalef_ps(p, n); }
HWY_INLINE __m256 scale_by_power(__m256 p, __m256 n) { return _mm256_scalef_ps(p, n); }
HWY_INLINE __m128 scale_by_power(__m128 p, __m128 n) { return _mm_scalef_ps(p, n); }
#endif

// With this instead of kRound the sum's low bits are n + 127, and a shift by 23 makes the power 2^n of them: 0 for n = -127,
// infinity for n = 128.
inline constexpr float kRoundBiased = kRound + 127.0f;
template <class D, class V>
HWY_INLINE V power_of_shifted(D d, V shifted) {
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(hn::RebindToSigned<D>(), shifted)));
}
// e^x for x that neither bound of the power cuts off wrongly.
template <class D, class V>
HWY_INLINE V exp_in_range(D d, V x) {
#if SPARKLE_HAS_SCALEF
  const V n = hn::Sub(hn::MulAdd(x, hn::Set(d, kLog2E), hn::Set(d, kRound)), hn::Set(d, kRound));
  return V{scale_by_power(exp_reduced(d, exp_remainder(d, x, n)).raw, n.raw)};
#else
  const V shifted = hn::MulAdd(x, hn::Set(d, kLog2E), hn::Set(d, kRoundBiased));
  const V p = exp_reduced(d, exp_remainder(d, x, hn::Sub(shifted, hn::Set(d, kRoundBiased))));
  return hn::Mul(p, power_of_shifted(d, shifted));
#endif
}
// e^x, 1 ulp. x = n ln2 + r, e^r by a polynomial, times 2^n by adding n to the exponent bits.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
#if SPARKLE_HAS_SCALEF
  return exp_in_range(d, at_most(at_least(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f)));
#else
  const hn::RebindToSigned<D> di;
  const V shifted = hn::MulAdd(x, hn::Set(d, kLog2E), hn::Set(d, kRound));
  const V p = exp_reduced(d, exp_remainder(d, x, hn::Sub(shifted, hn::Set(d, kRound))));
  const V scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  // Below ln(2^-126): zero; above ln(max float): infinity; NaN fails the second comparison and stays.
  const V kept = hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -87.3365448f)), scaled);
  return hn::IfThenElse(hn::Le(x, hn::Set(d, 88.7228317f)), kept,
                        hn::Add(x, hn::Set(d, std::numeric_limits<float>::infinity())));
#endif
}

// e^x, 2 ulp, for quotients: above 88.37 it may be infinity already, below -87.3 zero or a denormal.
template <class D, class V>
HWY_INLINE V ExpForQuotient(D d, V x) {
  return exp_in_range(d, at_most(at_least(x, hn::Set(d, -88.0f)), hn::Set(d, 88.8f)));
}
// e^x, 2 ulp, for x <= 0 or NaN: below -87.3 zero.
template <class D, class V>
HWY_INLINE V ExpOfNegative(D d, V x) {
  // Where a denormal is as quick as any number, it takes more to reach zero.
  return exp_in_range(d, at_least(x, hn::Set(d, SPARKLE_HAS_SCALEF ? -200.0f : -88.0f)));
}

// e^x - 1 for x in [-18, 88], 2 ulp: 2^n (e^r - 1) + (2^n - 1).
template <class D, class V>
HWY_INLINE V expm1_in_range(D d, V x) {
  const V shifted = hn::MulAdd(x, hn::Set(d, kLog2E), hn::Set(d, kRoundBiased));
  const V r = exp_remainder(d, x, hn::Sub(shifted, hn::Set(d, kRoundBiased)));
  const V q = polynomial(d, r, 0.5f, 1.666666716e-01f, 4.166634008e-02f, 8.333271369e-03f, 1.394205960e-03f, 1.991503232e-04f);
  const V p = hn::MulAdd(hn::Mul(r, r), q, r);
  const V power = power_of_shifted(d, shifted);
  return hn::MulAdd(power, p, hn::Sub(power, hn::Set(d, 1.0f)));
}
// The same for any x <= 88.
template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  return expm1_in_range(d, at_least(x, hn::Set(d, -18.0f)));
}

// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1], plus e * ln2_low: the part of a logarithm that is rounded.
template <class D, class V>
HWY_INLINE V log_tail(D d, V f, V e) {
  const V p = polynomial(d, f, 3.333331048e-01f, -2.499998361e-01f, 2.000231892e-01f, -1.666946560e-01f, 1.421678960e-01f,
                         -1.237922609e-01f, 1.188268885e-01f, -1.182596087e-01f, 6.936729699e-02f);
  const V square = hn::Mul(f, f);
  const V cubic = hn::MulAdd(e, hn::Set(d, kLn2Low), hn::Mul(hn::Mul(square, f), p));
  return hn::NegMulAdd(hn::Set(d, 0.5f), square, cubic);
}

// Natural logarithm, 2 ulp, of a positive normal number, as sums of exponentials are, or NaN.
template <class D, class V>
HWY_INLINE V LogOfNormal(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  const V e = hn::ConvertTo(d, exponent);
  const V y = hn::MulAdd(e, hn::Set(d, kLn2High), hn::Add(f, log_tail(d, f, e)));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// Natural logarithm, 2 ulp; log(0) = -inf, log(negative) = NaN. x = 2^e m with m in [sqrt(1/2), sqrt(2)). What x is, its bits
// say: comparisons and products take denormals for zero where the thread flushes them, integers do not.
template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto given = hn::BitCast(di, x), none = hn::Zero(di), infinite = hn::Set(di, 0x7f800000);
  const auto denormal = hn::And(hn::Gt(given, none), hn::Lt(given, hn::Set(di, 0x00800000)));
  // A denormal is as many units of 2^-149 as its bits count.
  const auto bits = hn::IfThenElse(denormal, hn::BitCast(di, hn::ConvertTo(d, given)), given);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  const V e = hn::ConvertTo(d, hn::Sub(exponent, hn::IfThenElseZero(denormal, hn::Set(di, 149))));
  const V y = hn::MulAdd(e, hn::Set(d, kLn2High), hn::Add(f, log_tail(d, f, e)));
  // Each zero by itself: a test of both at once is taken for a comparison of floats by compilers.
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN()), lowest = hn::Set(d, -kInfinity);
  const auto negative_zero = hn::Eq(given, hn::Set(di, std::numeric_limits<int32_t>::min()));
  const V special =
      hn::IfThenElse(hn::RebindMask(d, hn::Lt(given, none)), hn::IfThenElse(hn::RebindMask(d, negative_zero), lowest, nan),
                     hn::IfThenElse(hn::RebindMask(d, hn::Eq(given, none)), lowest, x));
  return hn::IfThenElse(hn::RebindMask(d, hn::And(hn::Gt(given, none), hn::Lt(given, infinite))), y, special);
}

// log(1 + e) for e in [0, 1], 2 ulp: halved above sqrt(2) - 1, where 1 + e leaves the range of the polynomial.
template <class D, class V>
HWY_INLINE V log1p_unit(D d, V e) {
  const auto upper = hn::Gt(e, hn::Set(d, 0.414213562f));
  const V one = hn::Set(d, 1.0f);
  const V f = hn::IfThenElse(upper, hn::Mul(hn::Sub(e, one), hn::Set(d, 0.5f)), e);
  const V k = hn::IfThenElseZero(upper, one);
  return hn::MulAdd(k, hn::Set(d, kLn2High), hn::Add(f, log_tail(d, f, k)));
}

// 1 / (1 + e^-x), 3 ulp.
template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, ExpForQuotient(d, hn::Neg(x))));
}
// x / (1 + e^-x), 3 ulp.
template <class D, class V>
HWY_INLINE V Silu(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), ExpForQuotient(d, hn::Neg(x))));
}
// (e^2|x| - 1) / (e^2|x| + 1) with the sign of x, 3 ulp. A quotient of polynomials would be a fifth quicker, at 5 ulp.
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V m = expm1_in_range(d, at_most(hn::Abs(hn::Add(x, x)), hn::Set(d, 20.0f)));
  return hn::CopySign(hn::Div(m, hn::Add(m, hn::Set(d, 2.0f))), x);
}

// e^(t^2) erfc(t) for t in [0, 14] by a polynomial in u = (t - 3) / (t + 3), divided by 1 + 2t (relative error 5.4e-9).
template <class D, class V>
HWY_INLINE V erfcx(D d, V t) {
  // One division for both quotients.
  const V three = hn::Set(d, 3.0f), one = hn::Set(d, 1.0f);
  const V above = hn::Add(t, three), beside = hn::MulAdd(t, hn::Set(d, 2.0f), one);
  const V inverse = hn::Div(one, hn::Mul(above, beside));
  const V u = hn::Mul(hn::Mul(hn::Sub(t, three), beside), inverse);
  const V p =
      horner(d, u, 1.253008008e+00f, -1.356211454e-01f, -4.756289348e-02f, 1.296462417e-01f, -1.192639321e-01f,
             6.830213219e-02f, -2.382850833e-02f, 2.524795011e-03f, 2.034723759e-03f, -6.997008459e-04f, -2.351194998e-04f);
  return hn::Mul(p, hn::Mul(above, inverse));
}
// e^-(x * y) with the rounding error of the product put back, so that large exponents cost no accuracy.
template <class D, class V>
HWY_INLINE V exp_of_minus_product(D d, V x, V y) {
  const V h = hn::Mul(x, y);
  const V low = hn::MulSub(x, y, h);
  const V e = ExpOfNegative(d, hn::Neg(h));
  return hn::NegMulAdd(e, low, e);
}

// erf(x) for |x| <= 1, 1 ulp: x + x P(x^2).
template <class D, class V>
HWY_INLINE V erf_small(D d, V x) {
  return hn::MulAdd(x,
                    polynomial(d, hn::Mul(x, x), 1.283791661e-01f, -3.761262596e-01f, 1.128360033e-01f, -2.685444430e-02f,
                               5.189535208e-03f, -8.020841051e-04f, 7.889119297e-05f),
                    x);
}
// Error function, 2 ulp; above 1 it is 1 - 2^Q(|x|) with Q the logarithm of erfc by a polynomial (error of the difference
// 1.1e-9 and, of 2^r, 1.2e-8).
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V size = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V t = at_most(size, hn::Set(d, 3.95f));
  const V q = polynomial(d, t, -5.103093572e-04f, -1.625975013e+00f, -9.207650423e-01f, -1.486514956e-01f, 3.145842627e-02f,
                         -4.240957089e-03f, 2.677266893e-04f);
  const V shifted = hn::Add(q, hn::Set(d, kRoundBiased));
  const V r = hn::Sub(q, hn::Sub(shifted, hn::Set(d, kRoundBiased)));
  const V p = polynomial(d, r, 1.000000072e+00f, 6.931469671e-01f, 2.402211972e-01f, 5.550713275e-02f, 9.675541329e-03f,
                         1.327647135e-03f);
  const V large = hn::NegMulAdd(p, power_of_shifted(d, shifted), one);
  return hn::IfThenElse(hn::Lt(size, one), erf_small(d, x), hn::CopySign(large, x));
}

// x Phi(x) below -4.5, where Phi(x) = erfc(-x / sqrt 2) / 2, 5 ulp; vectors with such lanes are rare.
template <class D, class V>
HWY_NOINLINE V gelu_with_tail(D d, V x, V usual) {
  const V c = at_most(hn::Abs(x), hn::Set(d, 19.0f));
  const V half = hn::Set(d, 0.5f);
  const V tail =
      hn::Mul(hn::Mul(half, exp_of_minus_product(d, c, hn::Mul(c, half))), erfcx(d, hn::Mul(c, hn::Set(d, 0.707106781f))));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -4.5f)), hn::Mul(x, tail), usual);
}
// x Phi(x) with Phi the normal distribution, 5 ulp also in the negative tail, as max(x, 0) - |x| Phi(-|x|). Down to -4.5
// Phi(-c) is 2^(R(c) - 5/2 - c^2 log2(e) / 2) with R by a polynomial around 2 (error 8.5e-8); the rounding of c^2 is put back.
template <class D, class V>
HWY_INLINE V Gelu(D d, V x) {
  const V c = at_most(hn::Abs(x), hn::Set(d, 5.6f));
  const V remainder = polynomial(d, hn::Sub(c, hn::Set(d, 2.0f)), -7.259126753e-02f, -5.384363532e-01f, 8.243573457e-02f,
                                 -1.427155919e-02f, 2.368369140e-03f, -3.501472529e-04f, 4.213038847e-05f, -2.556134632e-06f,
                                 -6.614506560e-07f, 2.416983591e-07f, -2.527015575e-08f);
  const V rate = hn::Set(d, kHalfLog2E), bias = hn::Set(d, kRoundBiased);
  const V square = hn::Mul(c, c), lost = hn::MulSub(c, c, square);
  const V shifted = hn::Add(hn::NegMulAdd(square, rate, remainder), bias);
  const V exact = hn::NegMulAdd(square, rate, hn::Sub(bias, shifted));
  const V rest = hn::NegMulAdd(lost, rate, hn::NegMulAdd(square, hn::Set(d, kHalfLog2ERest), remainder));
  const V p = polynomial(d, hn::Add(exact, rest), 1.767767072e-01f, 1.225322336e-01f, 4.246550798e-02f, 9.812367149e-03f,
                         1.710410230e-03f, 2.346970723e-04f);
  const V tail = hn::Mul(p, power_of_shifted(d, shifted));
  const V usual = hn::NegMulAdd(c, tail, at_least(x, hn::Zero(d)));
  const auto beyond = hn::Lt(x, hn::Set(d, -4.5f));
  if (HWY_UNLIKELY(!hn::AllFalse(d, beyond))) return gelu_with_tail(d, x, usual);
  return usual;
}
// 0.5 x (1 + tanh u) = x sigmoid(2u). Error 5 ulp for x > -2; below, the rounding of 2u shows: |2u| ulp.
template <class D, class V>
HWY_INLINE V GeluTanh(D d, V x) {
  const V inner = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.0713548163f), hn::Set(d, 1.59576912f));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), ExpForQuotient(d, hn::Neg(hn::Mul(x, inner)))));
}
// max(x, 0) + log(1 + e^-|x|), 4 ulp.
template <class D, class V>
HWY_INLINE V Softplus(D d, V x) {
  return hn::Add(at_least(x, hn::Zero(d)), log1p_unit(d, ExpOfNegative(d, hn::Neg(hn::Abs(x)))));
}
// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2), 4 ulp.
template <class D, class V>
HWY_INLINE V Mish(D d, V x) {
  const V two = hn::Set(d, 2.0f);
  const V e = Exp(d, at_most(x, hn::Set(d, 20.0f)));
  const V n = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(n, hn::Add(n, two)));
}
template <class D, class V>
HWY_INLINE V Elu(D d, V x, float a) {
  const V below = hn::Mul(hn::Set(d, a), Expm1(d, at_most(x, hn::Zero(d))));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
}
// x < 0 ? a (e^(x/a) - 1) : x. A negative a makes x / a positive, and the result -inf where e^(x/a) is beyond the range.
template <class D, class V>
HWY_INLINE V Celu(D d, V x, float a) {
  const V q = hn::Div(x, hn::Set(d, a)), most = hn::Set(d, 80.0f);
  const V power = hn::IfThenElse(hn::Gt(q, most), Exp(d, q), Expm1(d, at_most(q, most)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(hn::Set(d, a), power), x);
}
template <class D, class V>
HWY_INLINE V Selu(D d, V x, float a, float b) {
  return hn::Mul(hn::Set(d, b), Elu(d, x, a));
}
template <class D, class V>
HWY_INLINE V Relu(D d, V x) {
  return at_least(x, hn::Zero(d));
}
template <class D, class V>
HWY_INLINE V Clip(D d, V x, float a, float b) {
  return at_most(at_least(x, hn::Set(d, a)), hn::Set(d, b));
}
template <class D, class V>
HWY_INLINE V LeakyRelu(D d, V x, float a) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, a)), x);
}
template <class D, class V>
HWY_INLINE V HardSigmoid(D d, V x, float a, float b) {
  return Clip(d, hn::MulAdd(x, hn::Set(d, a), hn::Set(d, b)), 0.0f, 1.0f);
}
template <class D, class V>
HWY_INLINE V HardSwish(D d, V x) {
  return hn::Mul(x, HardSigmoid(d, x, 1.0f / 6.0f, 0.5f));
}

// sin(x + quarter_turns * pi/2), 2 ulp for |x| < 65536: x = n pi/2 + r with pi/2 as the sum of three floats (n * first is
// exact under FMA and so is the difference), then one of two polynomials. Larger arguments: double precision by lane.
template <class D, class V>
HWY_INLINE V sin_turned(D d, V x, int quarter_turns) {
  const hn::RebindToSigned<D> di;
  const V shifted = hn::MulAdd(x, hn::Set(d, 0.636619772f), hn::Set(d, kRound));
  const V n = hn::Sub(shifted, hn::Set(d, kRound));
  V r = hn::NegMulAdd(n, hn::Set(d, 1.570796371e+00f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -4.371138829e-08f), r);
  r = hn::NegMulAdd(n, hn::Set(d, -1.715124510e-15f), r);
  const V z = hn::Mul(r, r);
  const V sine =
      hn::MulAdd(hn::Mul(r, z), polynomial(d, z, -1.666666716e-01f, 8.333329111e-03f, -1.983925613e-04f, 2.717564485e-06f), r);
  const V cosine = hn::MulAdd(hn::Mul(z, z), polynomial(d, z, 4.166664556e-02f, -1.388730598e-03f, 2.443120320e-05f),
                              hn::NegMulAdd(hn::Set(d, 0.5f), z, hn::Set(d, 1.0f)));
  const auto quadrant = hn::Add(hn::BitCast(di, shifted), hn::Set(di, quarter_turns));
  const auto odd = hn::RebindMask(d, hn::Ne(hn::And(quadrant, hn::Set(di, 1)), hn::Zero(di)));
  const auto sign = hn::ShiftLeft<30>(hn::And(quadrant, hn::Set(di, 2)));
  return hn::Xor(hn::IfThenElse(odd, cosine, sine), hn::BitCast(d, sign));
}
template <class D, class V>
HWY_INLINE bool all_reducible(D d, V x) {
  return hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 65536.0f)));
}
template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
  if (HWY_UNLIKELY(!all_reducible(d, x))) return by_lane(d, [](double v) { return std::sin(v); }, x);
  return sin_turned(d, x, 0);
}
template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
  if (HWY_UNLIKELY(!all_reducible(d, x))) return by_lane(d, [](double v) { return std::cos(v); }, x);
  return sin_turned(d, x, 1);
}
// x^y in double precision by lane.
template <class D, class V>
HWY_NOINLINE V Pow(D d, V x, V y) {
  alignas(64) float xs[HWY_MAX_BYTES / sizeof(float)], ys[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, xs);
  hn::Store(y, d, ys);
  for (size_t i = 0; i < hn::Lanes(d); ++i)
    xs[i] = static_cast<float>(std::pow(static_cast<double>(xs[i]), static_cast<double>(ys[i])));
  return hn::Load(d, xs);
}

// Activations as functors: y = f(d, v).
struct NoActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return v;
  }
};
struct ReluActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return Relu(d, v);
  }
};
struct ClipActivation {
  float a, b;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return Clip(d, v, a, b);
  }
};

// Calls body(f) with f(d, v) the activation, the switch taken once outside.
template <class Body>
HWY_INLINE void visit_activation(Activation activation, float a, float b, Body&& body) {
  switch (activation) {
    case Activation::none: return body(NoActivation{});
    case Activation::relu: return body(ReluActivation{});
    case Activation::clip: return body(ClipActivation{a, b});
    case Activation::leaky_relu: return body([a](auto d, auto v) HWY_ATTR { return LeakyRelu(d, v, a); });
    case Activation::elu: return body([a](auto d, auto v) HWY_ATTR { return Elu(d, v, a); });
    case Activation::selu: return body([a, b](auto d, auto v) HWY_ATTR { return Selu(d, v, a, b); });
    case Activation::sigmoid: return body([](auto d, auto v) HWY_ATTR { return Sigmoid(d, v); });
    case Activation::hard_sigmoid: return body([a, b](auto d, auto v) HWY_ATTR { return HardSigmoid(d, v, a, b); });
    case Activation::tanh: return body([](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
    case Activation::silu: return body([](auto d, auto v) HWY_ATTR { return Silu(d, v); });
    case Activation::hard_swish: return body([](auto d, auto v) HWY_ATTR { return HardSwish(d, v); });
    case Activation::gelu: return body([](auto d, auto v) HWY_ATTR { return Gelu(d, v); });
    case Activation::gelu_tanh: return body([](auto d, auto v) HWY_ATTR { return GeluTanh(d, v); });
    case Activation::softplus: return body([](auto d, auto v) HWY_ATTR { return Softplus(d, v); });
    case Activation::mish: return body([](auto d, auto v) HWY_ATTR { return Mish(d, v); });
  }
}

// Any activation over `count` neighbouring floats in place: the cheap way for a tile just stored and still in L1.
HWY_NOINLINE inline void activate_strip(Activation activation, float a, float b, float* values, size_t count) {
  if (activation == Activation::none) return;
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  visit_activation(activation, a, b, [&](auto f) HWY_ATTR {
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(f(d, hn::LoadU(d, values + i)), d, values + i);
    const auto left = static_cast<int64_t>(count - i);
    if (left > 0) store_lanes(f(d, load_lanes(d, values + i, left)), d, values + i, left);
  });
}

}  // namespace simd_math
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
