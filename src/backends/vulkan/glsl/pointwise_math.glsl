// The pointwise family's functions in fp32, each within a few units of the last place: drivers promise far less of their own
// exp, log, sin and pow. Parts are divided by empty lines; a program takes the parts that it names. `precise` wherever rounding
// errors are taken off; fma() may round twice, as it does on some devices: what must be exact is split instead.

float nan_of() { return uintBitsToFloat(0x7fc00000u); }

float infinity_of() { return uintBitsToFloat(0x7f800000u); }

bool is_nan_of(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

bool is_infinity_of(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u; }

float sign_as(float size, float x) {
  return uintBitsToFloat((floatBitsToUint(size) & 0x7fffffffu) | (floatBitsToUint(x) & 0x80000000u));
}

// x * 2^n in two steps, neither of which leaves the range.
float scaled_by(float x, int n) {
  const int first = n / 2;
  precise float y = x * uintBitsToFloat(uint(first + 127) << 23);
  y = y * uintBitsToFloat(uint(n - first + 127) << 23);
  return y;
}

// exp(r) - 1 for |r| <= 0.35: the series.
float exp_near(float r) {
  precise float p = fma(r, 1.0 / 5040.0, 1.0 / 720.0);
  p = fma(p, r, 1.0 / 120.0);
  p = fma(p, r, 1.0 / 24.0);
  p = fma(p, r, 1.0 / 6.0);
  p = fma(p, r, 0.5);
  p = fma(p * r, r, r);
  return p;
}

// x = n ln 2 + r
float exp_rest(float x, out int n) {
  const float whole = roundEven(x * 1.44269504);
  n = int(whole);
  precise float r = fma(whole, -0.693359375, x);
  r = fma(whole, 2.12194440e-4, r);
  return r;
}

float exp_of(float x) {
  if (is_nan_of(x)) return x;
  int n;
  const float r = exp_rest(clamp(x, -104.0, 89.0), n);
  precise float p = 1.0 + exp_near(r);
  return scaled_by(p, n);
}

// exp(x) - 1 for x below 88
float expm1_of(float x) {
  if (is_nan_of(x)) return x;
  int n;
  const float r = exp_rest(max(x, -104.0), n);
  if (n == 0) return exp_near(r);
  const float power = scaled_by(1.0, n);
  precise float y = fma(power, exp_near(r), power - 1.0);
  return y;
}

// x = m * 2^e with m in [0.707, 1.414); gives m - 1
float log_rest(float x, out int e) {
  uint bits = floatBitsToUint(x);
  e = 0;
  if (bits < 0x00800000u) bits = floatBitsToUint(float(bits)), e = -149;  // units of 2^-149: devices may flush x itself
  e += int(bits >> 23) - 126;
  precise float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f000000u);
  if (m < 0.70710678) {
    e -= 1;
    m = m + m;
  }
  m = m - 1.0;
  return m;
}

float log_of(float x) {
  const uint bits = floatBitsToUint(x);
  if (bits << 1 == 0u) return -infinity_of();
  if (bits >= 0x7f800000u) return bits == 0x7f800000u ? x : nan_of();
  int e;
  const float f = log_rest(x, e);
  precise float z = f * f;
  precise float y = fma(f, 7.0376836292e-2, -1.1514610310e-1);
  y = fma(y, f, 1.1676998740e-1);
  y = fma(y, f, -1.2420140846e-1);
  y = fma(y, f, 1.4249322787e-1);
  y = fma(y, f, -1.6668057665e-1);
  y = fma(y, f, 2.0000714765e-1);
  y = fma(y, f, -2.4999993993e-1);
  y = fma(y, f, 3.3333331174e-1);
  y = y * f * z;
  y = fma(float(e), -2.12194440e-4, y);
  y = fma(z, -0.5, y);
  y = f + y;
  y = fma(float(e), 0.693359375, y);
  return y;
}

float log1p_of(float x) {
  precise float u = 1.0 + x;
  if (u == 1.0) return x;
  if (!(x < 1e10)) return log_of(x);
  precise float y = log_of(u) * (x / (u - 1.0));
  return y;
}

// The first 12 bits of x.
float upper_part(float x) { return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u); }

// x * y - product, exact but for what lies below the range.
float product_error(float x, float y, float product) {
  precise float x_high = upper_part(x), y_high = upper_part(y);
  precise float x_low = x - x_high, y_low = y - y_high;
  precise float e = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
  return e;
}

// x ^ y as C has it. The logarithm is kept in two floats: the product with y may be 100, and its error becomes relative.
float pow_of(float x, float y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (is_nan_of(x) || is_nan_of(y)) return nan_of();
  const float size = abs(x);
  if (is_infinity_of(y)) return size == 1.0 ? 1.0 : (size > 1.0) == (y > 0.0) ? infinity_of() : 0.0;
  const bool even = abs(y) >= 16777216.0;
  const bool whole = even || y == trunc(y);
  const bool odd = whole && !even && (int(y) & 1) != 0;
  const bool below = (floatBitsToUint(x) >> 31) != 0u;
  const float sign_of_result = below && odd ? -1.0 : 1.0;
  if (size == 0.0 || is_infinity_of(size)) return sign_of_result * ((size == 0.0) == (y < 0.0) ? infinity_of() : 0.0);
  if (below && !whole) return nan_of();
  int e;
  const float f = log_rest(size, e);
  // log(1 + f) = 2 atanh(s), s = f / (2 + f)
  precise float d = 2.0 + f;
  precise float d_low = f - (d - 2.0);
  precise float s = f / d;
  precise float multiple = s * d;
  precise float s_low = ((f - multiple) - product_error(s, d, multiple) - s * d_low) / d;
  precise float z = s * s;
  precise float tail = fma(z, 2.0 / 9.0, 2.0 / 7.0);
  tail = fma(tail, z, 0.4);
  tail = fma(tail, z, 2.0 / 3.0);
  tail = tail * z * s;
  precise float exact = float(e) * 0.693359375;
  precise float twice = s + s;
  precise float high = exact + twice;
  precise float part = high - exact;
  precise float low = (exact - (high - part)) + (twice - part);
  low = low + (fma(float(e), -2.12194440e-4, tail) + (s_low + s_low));
  precise float sum = high + low;
  low = low - (sum - high);
  precise float p = y * sum;
  if (p > 90.0) return sign_of_result * infinity_of();
  if (p < -105.0) return sign_of_result * 0.0;
  precise float p_low = product_error(y, sum, p) + y * low;
  const float power = exp_of(p);
  precise float result = is_infinity_of(power) ? power : fma(power, p_low, power);
  return sign_of_result * result;
}

// 32 bits of 2 / pi from bit `at` on; what lies before the point is zero.
uint two_over_pi(int at) {
  const uint kBits[9] = uint[9](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
                                0xdebbc561u);
  const int word = (at + 32) >> 5, shift = (at + 32) & 31;
  return shift == 0 ? kBits[word] : (kBits[word] << shift) | (kBits[word + 1] >> (32 - shift));
}

// x = q pi / 2 + the result, for any finite x: three parts of pi / 2 for small ones, else the bits of x * 2 / pi that count.
float quarter_of(float x, out int q) {
  if (abs(x) < 8192.0) {
    // 8 and 11 bits: their products with n are exact.
    const float n = roundEven(x * 0.636619772);
    q = int(n);
    precise float r = x - n * 1.5703125;
    r = r - n * 4.837512969970703125e-4;
    r = r - n * 7.54978995489188216e-8;
    return r;
  }
  const uint bits = floatBitsToUint(x);
  const int exponent = int(bits >> 23 & 255u);
  const uint m = (bits << 8) | 0x80000000u;
  const int at = exponent - 160;
  // m times 96 bits, of the product bits 32 to 95: two before the point, 62 behind.
  uint high, low, unused;
  umulExtended(m, two_over_pi(at + 64), high, unused);
  uint middle_high, middle_low, carry;
  umulExtended(m, two_over_pi(at + 32), middle_high, middle_low);
  low = uaddCarry(middle_low, high, carry);
  high = m * two_over_pi(at) + middle_high + carry;
  q = int(high >> 30);
  high = (high << 2) | (low >> 30);
  low <<= 2;
  const bool over = (high >> 31) != 0u;
  if (over) {
    q += 1;
    high = ~high, low = ~low;
  }
  const int zeros = high == 0u ? 31 : 31 - findMSB(high);
  const uint first = zeros == 0 ? high : (high << zeros) | (low >> (32 - zeros));
  precise float r = scaled_by(float(first) * 1.57079633, -32 - zeros);
  if (over) r = -r;
  if ((bits >> 31) != 0u) r = -r, q = -q;
  return r;
}

float sin_near(float r) {
  precise float z = r * r;
  precise float p = fma(z, -1.9515295891e-4, 8.3321608736e-3);
  p = fma(p, z, -1.6666654611e-1);
  p = fma(p * z, r, r);
  return p;
}

float cos_near(float r) {
  precise float z = r * r;
  precise float p = fma(z, 2.443315711809948e-5, -1.388731625493765e-3);
  p = fma(p, z, 4.166664568298827e-2);
  p = fma(p * z, z, fma(z, -0.5, 1.0));
  return p;
}

float sin_of(float x) {
  if (is_nan_of(x) || is_infinity_of(x)) return nan_of();
  int q;
  const float r = quarter_of(x, q);
  const float y = (q & 1) != 0 ? cos_near(r) : sin_near(r);
  return (q & 2) != 0 ? -y : y;
}

float cos_of(float x) {
  if (is_nan_of(x) || is_infinity_of(x)) return nan_of();
  int q;
  const float r = quarter_of(x, q);
  const float y = (q & 1) != 0 ? sin_near(r) : cos_near(r);
  return ((q + 1) & 2) != 0 ? -y : y;
}

float tan_of(float x) {
  if (is_nan_of(x) || is_infinity_of(x)) return nan_of();
  int q;
  const float r = quarter_of(x, q);
  precise float y = (q & 1) != 0 ? -cos_near(r) / sin_near(r) : sin_near(r) / cos_near(r);
  return y;
}

// asin(t) from t and t^2, |t| <= 0.5
float asin_near(float t, float z) {
  precise float p = fma(z, 4.2163199048e-2, 2.4181311049e-2);
  p = fma(p, z, 4.5470025998e-2);
  p = fma(p, z, 7.4953002686e-2);
  p = fma(p, z, 1.6666752422e-1);
  p = fma(p * z, t, t);
  return p;
}

float asin_of(float x) {
  const float a = abs(x);
  if (!(a <= 1.0)) return nan_of();
  if (a <= 0.5) return asin_near(x, x * x);
  const float z = 0.5 * (1.0 - a);
  precise float y = 1.57079633 - 2.0 * asin_near(sqrt(z), z);
  return sign_as(y, x);
}

float acos_of(float x) {
  const float a = abs(x);
  if (!(a <= 1.0)) return nan_of();
  if (a <= 0.5) return 1.57079633 - asin_near(x, x * x);
  const float z = 0.5 * (1.0 - a);
  precise float y = 2.0 * asin_near(sqrt(z), z);
  return x < 0.0 ? 3.14159265 - y : y;
}

float atan_of(float x) {
  const float a = abs(x);
  precise float y = 0.0, t = a;
  if (a > 2.414213562) y = 1.57079633, t = -1.0 / a;
  else if (a > 0.4142135624) y = 0.785398163, t = (a - 1.0) / (a + 1.0);
  precise float z = t * t;
  precise float p = fma(z, 8.05374449538e-2, -1.38776856032e-1);
  p = fma(p, z, 1.99777106478e-1);
  p = fma(p, z, -3.33329491539e-1);
  y = y + fma(p * z, t, t);
  return sign_as(y, x);
}

float sinh_of(float x) {
  const float a = abs(x);
  precise float y;
  if (a > 80.0) {
    const float root = exp_of(0.5 * a);
    y = 0.5 * root * root;
  } else {
    const float e = expm1_of(a);
    y = 0.5 * (e + e / (e + 1.0));
  }
  return sign_as(y, x);
}

float cosh_of(float x) {
  const float root = exp_of(0.5 * abs(x));
  precise float power = root * root;
  precise float y = abs(x) > 80.0 ? 0.5 * root * root : 0.5 * (power + 1.0 / power);
  return y;
}

float asinh_of(float x) {
  const float a = abs(x);
  precise float y = a > 1e9 ? log_of(a) + 0.693147181 : log1p_of(a + a * a / (1.0 + sqrt(1.0 + a * a)));
  return sign_as(y, x);
}

float acosh_of(float x) {
  if (!(x >= 1.0)) return nan_of();
  precise float t = x - 1.0;
  precise float y = x > 1e9 ? log_of(x) + 0.693147181 : log1p_of(t + sqrt(2.0 * t + t * t));
  return y;
}

float atanh_of(float x) {
  const float a = abs(x);
  if (!(a <= 1.0)) return nan_of();
  if (a == 1.0) return sign_as(infinity_of(), x);
  precise float y = 0.5 * log1p_of(2.0 * a / (1.0 - a));
  return sign_as(y, x);
}

float sqrt_of(float x) { return x < 0.0 ? nan_of() : sqrt(x); }

// Near zero the series keeps small values whole; beyond, Abramowitz and Stegun 7.1.26 is good to 1.5e-7 of 1.
float erf_of(float x) {
  const float a = abs(x);
  precise float s = a * a;
  precise float y;
  if (a < 0.5) {
    y = fma(s, -0.0008548327, 0.0052239776);
    y = fma(y, s, -0.0268661706);
    y = fma(y, s, 0.1128379167);
    y = fma(y, s, -0.3761263890);
    y = fma(y, s, 1.1283791671);
    y = y * x;
    return y;
  }
  precise float t = 1.0 / fma(0.3275911, a, 1.0);
  y = fma(t, 1.061405429, -1.453152027);
  y = fma(y, t, 1.421413741);
  y = fma(y, t, -0.284496736);
  y = fma(y, t, 0.254829592);
  y = 1.0 - y * t * exp_of(-s);
  return sign_as(y, x);
}

// The remainder with the sign of x, exact: mantissas divided as integers, eight bits at a time.
float mod_of(float x, float y) {
  const uint a = floatBitsToUint(x) & 0x7fffffffu, b = floatBitsToUint(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) return nan_of();
  if (a < b) return x;
  int from = int(a >> 23), to = int(b >> 23);
  const uint divisor = to == 0 ? b : (b & 0x7fffffu) | 0x800000u;
  uint rest = from == 0 ? a : (a & 0x7fffffu) | 0x800000u;
  from = max(from, 1), to = max(to, 1);
  rest %= divisor;
  for (int left = from - to; left > 0 && rest != 0u; left -= 8) rest = (rest << min(left, 8)) % divisor;
  return sign_as(scaled_by(float(rest), to - 150), x);
}

float floor_mod_of(float x, float y) {
  const float r = mod_of(x, y);
  if (r == 0.0) return sign_as(0.0, y);
  return (r < 0.0) != (y < 0.0) ? r + y : r;
}

float sigmoid_of(float x) {
  precise float y = 1.0 / (1.0 + exp_of(-x));
  return y;
}

float tanh_of(float x) {
  const float e = expm1_of(-2.0 * abs(x));
  precise float y = -e / (2.0 + e);
  return sign_as(y, x);
}

float softplus_of(float x) {
  precise float y = (x < 0.0 ? 0.0 : x) + log1p_of(exp_of(-abs(x)));
  return y;
}

float gelu_of(float x) {
  precise float y = 0.5 * x * (1.0 + erf_of(x * 0.70710678118654752));
  return y;
}

float gelu_tanh_of(float x) {
  precise float y = 0.5 * x * (1.0 + tanh_of(0.79788456080286536 * (x + 0.044715 * x * x * x)));
  return y;
}

float within(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
