// Quotients that are the same on every device.
#ifndef QUOTIENT_GLSL
#define QUOTIENT_GLSL
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

// a / b rounded to nearest even, denormal numbers included, by long division of the mantissas: devices may divide 2.5 units off.
float divided(float a, float b) {
  const uint kInfinite = 0x7f800000u, sign = (floatBitsToUint(a) ^ floatBitsToUint(b)) & 0x80000000u;
  uint m = floatBitsToUint(a) & 0x7fffffffu, d = floatBitsToUint(b) & 0x7fffffffu;
  if (m > kInfinite || d > kInfinite || (m == d && (m == 0u || m == kInfinite))) return uintBitsToFloat(0x7fc00000u);
  if (m == kInfinite || d == 0u) return uintBitsToFloat(sign | kInfinite);
  if (d == kInfinite || m == 0u) return uintBitsToFloat(sign);
  int e = max(int(m >> 23), 1) - max(int(d >> 23), 1) + 127;
  m = m < 0x800000u ? m : (m & 0x7fffffu) | 0x800000u;
  d = d < 0x800000u ? d : (d & 0x7fffffu) | 0x800000u;
  const int shift_m = 23 - findMSB(m), shift_d = 23 - findMSB(d);
  m <<= shift_m, d <<= shift_d;
  e += shift_d - shift_m;
  if (m < d) {
    m <<= 1;
    --e;
  }
  // The quotient in [1,2) with 25 bits; what remains of m says whether more follow.
  uint q = 0u;
  for (int i = 0; i < 25; ++i) {
    q <<= 1;
    if (m >= d) {
      m -= d;
      q |= 1u;
    }
    m <<= 1;
  }
  if (e >= 255) return uintBitsToFloat(sign | kInfinite);
  const int drop = e >= 1 ? 1 : min(2 - e, 26);
  uint kept = q >> drop;
  const uint rest = q & ((1u << drop) - 1u), half_way = 1u << (drop - 1);
  if (rest > half_way || (rest == half_way && (m != 0u || (kept & 1u) != 0u))) ++kept;
  return uintBitsToFloat(sign | (e >= 1 ? (uint(e - 1) << 23) + kept : kept));  // a carry moves into the exponent
}
#endif
