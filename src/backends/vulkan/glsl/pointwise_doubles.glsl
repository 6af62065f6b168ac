// Double precision for the pointwise family, on devices that have it: functions within a few units of the last place, made as
// those in fp32 are; conversions exact or rounded once, by the bits. Every name ends in _f64. Parts are divided by empty lines.

uint high_word_f64(double x) { return unpackDouble2x32(x).y; }

double nan_of_f64() { return packDouble2x32(uvec2(0u, 0x7ff80000u)); }

double infinity_of_f64() { return packDouble2x32(uvec2(0u, 0x7ff00000u)); }

bool is_nan_of_f64(double x) {
  const uvec2 w = unpackDouble2x32(x);
  const uint high = w.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && w.x != 0u);
}

bool is_infinity_of_f64(double x) {
  const uvec2 w = unpackDouble2x32(x);
  return (w.y & 0x7fffffffu) == 0x7ff00000u && w.x == 0u;
}

double sign_as_f64(double size, double x) {
  const uvec2 w = unpackDouble2x32(size);
  return packDouble2x32(uvec2(w.x, (w.y & 0x7fffffffu) | (high_word_f64(x) & 0x80000000u)));
}

// Whole numbers next to x, by its bits: drivers may round doubles as they round floats, where all beyond 2^24 is taken for whole
// (Mesa's software device does where the CPU has no instruction for so wide a vector), or by adding and subtracting 2^52, which a
// compiler may undo.
double trunc_of_f64(double x) {
  const uvec2 w = unpackDouble2x32(x);
  const int e = int(w.y >> 20 & 2047u) - 1023;
  if (e >= 52) return x;
  if (e < 0) return packDouble2x32(uvec2(0u, w.y & 0x80000000u));
  if (e < 20) return packDouble2x32(uvec2(0u, w.y & ~(0xfffffu >> e)));
  return packDouble2x32(uvec2(w.x & ~(0xffffffffu >> (e - 20)), w.y));
}

double floor_of_f64(double x) {
  const double whole = trunc_of_f64(x);
  return whole > x ? whole - 1.0lf : whole;
}

double ceil_of_f64(double x) {
  const double whole = trunc_of_f64(x);
  return whole < x ? sign_as_f64(whole + 1.0lf, x) : whole;
}

double round_of_f64(double x) {
  const double whole = trunc_of_f64(x);
  precise double rest = abs(x - whole);
  const bool odd = 0.5lf * whole != trunc_of_f64(0.5lf * whole);
  if (!(rest > 0.5lf || (rest == 0.5lf && odd))) return whole;
  return sign_as_f64(abs(whole) + 1.0lf, x);
}

// x * 2^n in two steps, neither of which leaves the range.
double scaled_by_f64(double x, int n) {
  const int first = n / 2;
  precise double y = x * packDouble2x32(uvec2(0u, uint(first + 1023) << 20));
  y = y * packDouble2x32(uvec2(0u, uint(n - first + 1023) << 20));
  return y;
}

// exp(r) - 1 for |r| <= 0.35: the series.
double exp_near_f64(double r) {
  precise double p = 1.0lf / 87178291200.0lf;
  p = fma(p, r, 1.0lf / 6227020800.0lf);
  p = fma(p, r, 1.0lf / 479001600.0lf);
  p = fma(p, r, 1.0lf / 39916800.0lf);
  p = fma(p, r, 1.0lf / 3628800.0lf);
  p = fma(p, r, 1.0lf / 362880.0lf);
  p = fma(p, r, 1.0lf / 40320.0lf);
  p = fma(p, r, 1.0lf / 5040.0lf);
  p = fma(p, r, 1.0lf / 720.0lf);
  p = fma(p, r, 1.0lf / 120.0lf);
  p = fma(p, r, 1.0lf / 24.0lf);
  p = fma(p, r, 1.0lf / 6.0lf);
  p = fma(p, r, 0.5lf);
  p = fma(p * r, r, r);
  return p;
}

// x = n ln 2 + r; the first part of ln 2 has 32 bits, its product with n is exact.
double exp_rest_f64(double x, out int n) {
  const double whole = round_of_f64(x * 1.4426950408889634lf);
  n = int(whole);
  precise double r = x - whole * 0.69314718036912381649017333984375lf;
  r = r - whole * 1.9082149292705877e-10lf;
  return r;
}

double exp_of_f64(double x) {
  if (is_nan_of_f64(x)) return x;
  int n;
  const double r = exp_rest_f64(clamp(x, -746.0lf, 711.0lf), n);
  precise double p = 1.0lf + exp_near_f64(r);
  return scaled_by_f64(p, n);
}

// exp(x) - 1 for x below 709
double expm1_of_f64(double x) {
  if (is_nan_of_f64(x)) return x;
  int n;
  const double r = exp_rest_f64(max(x, -746.0lf), n);
  if (n == 0) return exp_near_f64(r);
  const double power = scaled_by_f64(1.0lf, n);
  precise double y = fma(power, exp_near_f64(r), power - 1.0lf);
  return y;
}

// x = m * 2^e with m in [0.707, 1.414); gives m - 1
double log_rest_f64(double x, out int e) {
  e = 0;
  if (high_word_f64(x) < 0x00100000u) x = x * 18014398509481984.0lf, e = -54;
  const uvec2 w = unpackDouble2x32(x);
  e += int(w.y >> 20) - 1022;
  precise double m = packDouble2x32(uvec2(w.x, (w.y & 0xfffffu) | 0x3fe00000u));
  if (m < 0.70710678118654752lf) {
    e -= 1;
    m = m + m;
  }
  m = m - 1.0lf;
  return m;
}

// log((1 + s) / (1 - s)) - 2 s from s and s^2, |s| <= 0.172
double log_tail_f64(double s, double z) {
  precise double p = 2.0lf / 23.0lf;
  p = fma(p, z, 2.0lf / 21.0lf);
  p = fma(p, z, 2.0lf / 19.0lf);
  p = fma(p, z, 2.0lf / 17.0lf);
  p = fma(p, z, 2.0lf / 15.0lf);
  p = fma(p, z, 2.0lf / 13.0lf);
  p = fma(p, z, 2.0lf / 11.0lf);
  p = fma(p, z, 2.0lf / 9.0lf);
  p = fma(p, z, 2.0lf / 7.0lf);
  p = fma(p, z, 0.4lf);
  p = fma(p, z, 2.0lf / 3.0lf);
  p = p * z * s;
  return p;
}

double log_of_f64(double x) {
  if (!(x > 0.0lf)) return x == 0.0lf ? -infinity_of_f64() : nan_of_f64();
  if (is_infinity_of_f64(x)) return x;
  int e;
  const double f = log_rest_f64(x, e);
  precise double s = f / (2.0lf + f);
  precise double y = log_tail_f64(s, s * s) + double(e) * 1.9082149292705877e-10lf;
  y = y + (s + s);
  y = y + double(e) * 0.69314718036912381649017333984375lf;
  return y;
}

double log1p_of_f64(double x) {
  precise double u = 1.0lf + x;
  if (u == 1.0lf) return x;
  if (!(x < 1e18lf)) return log_of_f64(x);
  precise double y = log_of_f64(u) * (x / (u - 1.0lf));
  return y;
}

// The first 26 bits of x.
double upper_part_f64(double x) {
  const uvec2 w = unpackDouble2x32(x);
  return packDouble2x32(uvec2(w.x & 0xf8000000u, w.y));
}

// x * y - product, exact but for what lies below the range.
double product_error_f64(double x, double y, double product) {
  precise double x_high = upper_part_f64(x), y_high = upper_part_f64(y);
  precise double x_low = x - x_high, y_low = y - y_high;
  precise double e = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
  return e;
}

// x ^ y as C has it. The logarithm is kept in two doubles: the product with y may be 700, and its error becomes relative.
double pow_of_f64(double x, double y) {
  if (y == 0.0lf || x == 1.0lf) return 1.0lf;
  if (is_nan_of_f64(x) || is_nan_of_f64(y)) return nan_of_f64();
  const double size = abs(x);
  if (is_infinity_of_f64(y)) return size == 1.0lf ? 1.0lf : (size > 1.0lf) == (y > 0.0lf) ? infinity_of_f64() : 0.0lf;
  const bool whole = y == trunc_of_f64(y);
  const bool odd = whole && abs(y) < 9007199254740992.0lf && y * 0.5lf != trunc_of_f64(y * 0.5lf);
  const bool below = (high_word_f64(x) >> 31) != 0u;
  const double sign_of_result = below && odd ? -1.0lf : 1.0lf;
  if (size == 0.0lf || is_infinity_of_f64(size))
    return sign_of_result * ((size == 0.0lf) == (y < 0.0lf) ? infinity_of_f64() : 0.0lf);
  if (below && !whole) return nan_of_f64();
  int e;
  const double f = log_rest_f64(size, e);
  // log(1 + f) = 2 atanh(s), s = f / (2 + f)
  precise double d = 2.0lf + f;
  precise double d_low = f - (d - 2.0lf);
  precise double s = f / d;
  precise double multiple = s * d;
  precise double s_low = ((f - multiple) - product_error_f64(s, d, multiple) - s * d_low) / d;
  precise double tail = log_tail_f64(s, s * s);
  precise double exact = double(e) * 0.69314718036912381649017333984375lf;
  precise double twice = s + s;
  precise double high = exact + twice;
  precise double part = high - exact;
  precise double low = (exact - (high - part)) + (twice - part);
  low = low + (fma(double(e), 1.9082149292705877e-10lf, tail) + (s_low + s_low));
  precise double sum = high + low;
  low = low - (sum - high);
  precise double p = y * sum;
  if (p > 711.0lf) return sign_of_result * infinity_of_f64();
  if (p < -746.0lf) return sign_of_result * 0.0lf;
  precise double p_low = product_error_f64(y, sum, p) + y * low;
  const double power = exp_of_f64(p);
  precise double result = is_infinity_of_f64(power) ? power : fma(power, p_low, power);
  return sign_of_result * result;
}

double sqrt_of_f64(double x) { return x < 0.0lf ? nan_of_f64() : sqrt(x); }

// The remainder with the sign of x, exact: y times powers of two taken off, the largest first.
double mod_of_f64(double x, double y) {
  if (is_nan_of_f64(x) || is_nan_of_f64(y) || is_infinity_of_f64(x) || y == 0.0lf) return nan_of_f64();
  if (is_infinity_of_f64(y)) return x;
  double rest = abs(x), by = abs(y);
  const bool tiny = high_word_f64(by) < 0x00100000u;
  const int lowest = tiny ? int(high_word_f64(by * 18014398509481984.0lf) >> 20) - 54 : int(high_word_f64(by) >> 20);
  for (int k = max(int(high_word_f64(rest) >> 20), 1) - lowest; k >= 0 && rest >= by; --k) {
    const double part = scaled_by_f64(by, k);
    if (rest >= part) rest -= part;
  }
  return sign_as_f64(rest, x);
}

double floor_mod_of_f64(double x, double y) {
  const double r = mod_of_f64(x, y);
  if (r == 0.0lf) return sign_as_f64(0.0lf, y);
  return (r < 0.0lf) != (y < 0.0lf) ? r + y : r;
}

double sigmoid_of_f64(double x) {
  precise double y = 1.0lf / (1.0lf + exp_of_f64(-x));
  return y;
}

double tanh_of_f64(double x) {
  const double e = expm1_of_f64(-2.0lf * abs(x));
  precise double y = -e / (2.0lf + e);
  return sign_as_f64(y, x);
}

double softplus_of_f64(double x) {
  precise double y = (x < 0.0lf ? 0.0lf : x) + log1p_of_f64(exp_of_f64(-abs(x)));
  return y;
}

double gelu_tanh_of_f64(double x) {
  precise double y = 0.5lf * x * (1.0lf + tanh_of_f64(0.79788456080286536lf * (x + 0.044715lf * x * x * x)));
  return y;
}

double within_f64(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

double double_of_u64_f64(uvec2 v) { return double(v.y) * 4294967296.0lf + double(v.x); }

double double_of_i64_f64(uvec2 v) { return double(int(v.y)) * 4294967296.0lf + double(v.x); }

// The bits of x in fp32, rounded to even; `odd`: cut off, the last bit set where anything was: what is rounded to fewer bits
// from there is rounded once.
uint bits_of_f64(double x, bool odd) {
  const uvec2 w = unpackDouble2x32(x);
  const uint sign_bit = w.y & 0x80000000u;
  int exponent = int(w.y >> 20 & 2047u) - 896;
  uint fraction = (w.y & 0xfffffu) << 3 | w.x >> 29, rest = w.x << 3;
  if (exponent == 1151) return sign_bit | (is_nan_of_f64(x) ? 0x7fc00000u : 0x7f800000u);
  if (exponent >= 255) return sign_bit | (odd ? 0x7f7fffffu : 0x7f800000u);
  if (exponent <= 0) {
    if (exponent < -23) return sign_bit | (odd && x != 0.0lf ? 1u : 0u);
    fraction |= 0x800000u;
    const int shift = 1 - exponent;
    rest = fraction << (32 - shift) | (rest != 0u ? 1u : 0u);
    fraction >>= shift;
    exponent = 0;
  }
  const uint bits = (uint(exponent) << 23) + fraction;
  if (odd) return sign_bit | bits | (rest != 0u ? 1u : 0u);
  return sign_bit | (bits + (rest > 0x80000000u || (rest == 0x80000000u && (bits & 1u) != 0u) ? 1u : 0u));
}

float float_of_f64(double x) { return uintBitsToFloat(bits_of_f64(x, false)); }

float odd_float_of_f64(double x) { return uintBitsToFloat(bits_of_f64(x, true)); }

// Truncated, what lies beyond the integer saturates, NaN gives 0.
uint u32_of_f64(double x) {
  if (!(x > 0.0lf)) return 0u;
  return x >= 4294967296.0lf ? 0xffffffffu : uint(x);
}

uint i32_of_f64(double x) {
  if (!(x > -2147483648.0lf)) return x <= -2147483648.0lf ? 0x80000000u : 0u;
  return x >= 2147483648.0lf ? 0x7fffffffu : uint(int(x));
}

uint low_bits_of_f64(double x, int least, int most) {
  if (!(x > double(least))) return x <= double(least) ? uint(least) : 0u;
  return x >= double(most) ? uint(most) : uint(int(x));
}

uvec2 u64_of_f64(double x) {
  if (!(x >= 1.0lf)) return uvec2(0u);
  if (x >= 18446744073709551616.0lf) return uvec2(0xffffffffu);
  const double high = floor_of_f64(x * 2.3283064365386962890625e-10lf);
  return uvec2(uint(x - high * 4294967296.0lf), uint(high));
}

uvec2 i64_of_f64(double x) {
  if (x <= -9223372036854775808.0lf) return uvec2(0u, 0x80000000u);
  if (x >= 9223372036854775808.0lf) return uvec2(0xffffffffu, 0x7fffffffu);
  uvec2 v = u64_of_f64(abs(x));
  if (x < 0.0lf) {
    v.x = ~v.x + 1u;
    v.y = ~v.y + (v.x == 0u ? 1u : 0u);
  }
  return v;
}
