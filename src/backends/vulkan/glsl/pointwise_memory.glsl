// Elements in memory as bits and back: those of 8 and 16 bits in the low bits of a word, those of 64 in two words. Floats of 16
// bits are converted by hand where the rounding of a driver's own conversion is its choice. Parts are divided by empty lines.

uint bytes_at(Bytes m, int at) { return uint(m.v[at]); }

uint shorts_at(Shorts m, int at) { return uint(m.v[at]); }

uint words_at(Words m, int at) { return m.v[at]; }

uvec2 pairs_at(Pairs m, int at) { return m.v[at]; }

void four_bytes(Bytes m, int at, out uint v[4]) {
  const uint w = Words(m).v[at >> 2];
  v[0] = w & 255u, v[1] = w >> 8 & 255u, v[2] = w >> 16 & 255u, v[3] = w >> 24;
}

void four_shorts(Shorts m, int at, out uint v[4]) {
  const uvec2 w = Pairs(m).v[at >> 2];
  v[0] = w.x & 65535u, v[1] = w.x >> 16, v[2] = w.y & 65535u, v[3] = w.y >> 16;
}

void four_words(Words m, int at, out uint v[4]) {
  const uvec4 w = Quads(m).v[at >> 2];
  v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
}

void four_pairs(Pairs m, int at, out uvec2 v[4]) {
  const uvec4 a = Quads(m).v[at >> 1], b = Quads(m).v[(at >> 1) + 1];
  v[0] = a.xy, v[1] = a.zw, v[2] = b.xy, v[3] = b.zw;
}

void store_bytes(Bytes m, int at, uint bits) { m.v[at] = uint8_t(bits); }

void store_shorts(Shorts m, int at, uint bits) { m.v[at] = uint16_t(bits); }

void store_words(Words m, int at, uint bits) { m.v[at] = bits; }

void store_pairs(Pairs m, int at, uvec2 bits) { m.v[at] = bits; }

void store_vec4_bytes(Bytes m, int at, uint v[4]) {
  Words(m).v[at >> 2] = (v[0] & 255u) | (v[1] & 255u) << 8 | (v[2] & 255u) << 16 | v[3] << 24;
}

void store_vec4_shorts(Shorts m, int at, uint v[4]) {
  Pairs(m).v[at >> 2] = uvec2((v[0] & 65535u) | v[1] << 16, (v[2] & 65535u) | v[3] << 16);
}

void store_vec4_words(Words m, int at, uint v[4]) { Quads(m).v[at >> 2] = uvec4(v[0], v[1], v[2], v[3]); }

void store_vec4_pairs(Pairs m, int at, uvec2 v[4]) {
  Quads(m).v[at >> 1] = uvec4(v[0], v[1]);
  Quads(m).v[(at >> 1) + 1] = uvec4(v[2], v[3]);
}

float float_of_f16(uint bits) {
  const uint sign_bit = (bits & 0x8000u) << 16, size = bits & 0x7fffu;
  if (size < 0x0400u) return uintBitsToFloat(floatBitsToUint(float(size) * 5.9604644775390625e-8) | sign_bit);
  return uintBitsToFloat((size << 13) + (size >= 0x7c00u ? 0x70000000u : 0x38000000u) | sign_bit);
}

uint f16_of_float(float x) {
  const uint bits = floatBitsToUint(x), sign_bit = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign_bit | 0x7e00u;
  if (size >= 0x477ff000u) return sign_bit | 0x7c00u;
  // Below 2^-14 the sum with 1/2 leaves the bits that there are, rounded.
  if (size < 0x38800000u) {
    precise float sum = uintBitsToFloat(size) + 0.5;
    return sign_bit | (floatBitsToUint(sum) - 0x3f000000u);
  }
  return sign_bit | ((size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13);
}

float float_of_half(uint bits) { return float(unpackFloat2x16(bits).x); }

uint half_of_float(float x) { return packFloat2x16(f16vec2(float16_t(x), float16_t(0.0))); }

float float_of_bf16(uint bits) { return uintBitsToFloat(bits << 16); }

uint bf16_of_float(float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

float float_of_u64(uvec2 v) {
  if (v.y == 0u) return float(v.x);
  // The highest 32 bits, the lowest of them set where anything below is: rounded once, by the conversion.
  const int shift = findMSB(v.y) + 1;
  uint high = shift == 32 ? v.y : (v.y << (32 - shift)) | (v.x >> shift);
  if (shift == 32 ? v.x != 0u : (v.x & ((1u << shift) - 1u)) != 0u) high |= 1u;
  // A conversion may round as it likes: the 24 bits that remain are rounded here.
  uint over;
  const uint kept = uaddCarry(high, 127u + (high >> 8 & 1u), over);
  const float top = over != 0u ? 4294967296.0 : float(kept & 0xffffff00u);
  return top * uintBitsToFloat(uint(shift + 127) << 23);
}

float float_of_i64(uvec2 v) {
  if ((v.y >> 31) == 0u) return float_of_u64(v);
  const uint low = ~v.x + 1u;
  return -float_of_u64(uvec2(low, ~v.y + (low == 0u ? 1u : 0u)));
}

// Truncated, what lies beyond the integer saturates, NaN gives 0.
uint u32_of_float(float x) {
  if (!(x > 0.0)) return 0u;
  return x >= 4294967296.0 ? 0xffffffffu : uint(x);
}

uint i32_of_float(float x) {
  if (!(x > -2147483648.0)) return x <= -2147483648.0 ? 0x80000000u : 0u;
  return x >= 2147483648.0 ? 0x7fffffffu : uint(int(x));
}

uint low_bits_of_float(float x, int least, int most) {
  if (!(x > float(least))) return x <= float(least) ? uint(least) : 0u;
  return x >= float(most) ? uint(most) : uint(int(x));
}

uvec2 u64_of_float(float x) {
  if (!(x >= 1.0)) return uvec2(0u);
  if (x >= 18446744073709551616.0) return uvec2(0xffffffffu);
  const uint bits = floatBitsToUint(x);
  const uint m = (bits & 0x7fffffu) | 0x800000u;
  const int shift = int(bits >> 23) - 150;
  if (shift <= 0) return uvec2(m >> min(-shift, 31), 0u);
  if (shift >= 32) return uvec2(0u, m << (shift - 32));
  return uvec2(m << shift, m >> (32 - shift));
}

uvec2 i64_of_float(float x) {
  if (x <= -9223372036854775808.0) return uvec2(0u, 0x80000000u);
  if (x >= 9223372036854775808.0) return uvec2(0xffffffffu, 0x7fffffffu);
  uvec2 v = u64_of_float(abs(x));
  if (x < 0.0) {
    v.x = ~v.x + 1u;
    v.y = ~v.y + (v.x == 0u ? 1u : 0u);
  }
  return v;
}
