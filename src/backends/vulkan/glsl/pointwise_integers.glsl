// Integers of the pointwise family: exact, wrapping around, a quotient truncated and 0 where the divisor is (families/pointwise/
// integers.h). int and uint for types of up to 32 bits; ivec2 and uvec2 are signed and unsigned ones of 64, the low word first,
// so that no device needs 64-bit integers. Parts are divided by empty lines.

int quotient(int x, int y) {
  if (y == 0) return 0;
  if (y == -1) return int(0u - uint(x));
  const uint q = uint(abs(x)) / uint(abs(y));
  return (x < 0) != (y < 0) ? int(0u - q) : int(q);
}

uint quotient(uint x, uint y) { return y == 0u ? 0u : x / y; }

int remainder(int x, int y) { return y == 0 ? 0 : int(uint(x) - uint(quotient(x, y)) * uint(y)); }

uint remainder(uint x, uint y) { return y == 0u ? 0u : x % y; }

int floor_remainder(int x, int y) {
  const int r = remainder(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

uint floor_remainder(uint x, uint y) { return remainder(x, y); }

int power(int x, int y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? ((y & 1) == 0 ? 1 : -1) : 0;
  uint result = 1u, base = uint(x);
  for (uint n = uint(y); n != 0u; n >>= 1, base *= base)
    if ((n & 1u) != 0u) result *= base;
  return int(result);
}

uint power(uint x, uint y) {
  uint result = 1u;
  for (; y != 0u; y >>= 1, x *= x)
    if ((y & 1u) != 0u) result *= x;
  return result;
}

int add_of(int x, int y) { return int(uint(x) + uint(y)); }

int sub_of(int x, int y) { return int(uint(x) - uint(y)); }

int mul_of(int x, int y) { return int(uint(x) * uint(y)); }

uint add_of(uint x, uint y) { return x + y; }

uint sub_of(uint x, uint y) { return x - y; }

uint mul_of(uint x, uint y) { return x * y; }

bool less_of(int x, int y) { return x < y; }

bool less_of(uint x, uint y) { return x < y; }

bool is_zero(int x) { return x == 0; }

bool is_zero(uint x) { return x == 0u; }

uvec2 add_of(uvec2 x, uvec2 y) {
  uint carry;
  const uint low = uaddCarry(x.x, y.x, carry);
  return uvec2(low, x.y + y.y + carry);
}

uvec2 sub_of(uvec2 x, uvec2 y) {
  uint borrow;
  const uint low = usubBorrow(x.x, y.x, borrow);
  return uvec2(low, x.y - y.y - borrow);
}

uvec2 mul_of(uvec2 x, uvec2 y) {
  uint high, low;
  umulExtended(x.x, y.x, high, low);
  return uvec2(low, high + x.x * y.y + x.y * y.x);
}

ivec2 add_of(ivec2 x, ivec2 y) { return ivec2(add_of(uvec2(x), uvec2(y))); }

ivec2 sub_of(ivec2 x, ivec2 y) { return ivec2(sub_of(uvec2(x), uvec2(y))); }

ivec2 mul_of(ivec2 x, ivec2 y) { return ivec2(mul_of(uvec2(x), uvec2(y))); }

bool less_of(uvec2 x, uvec2 y) { return x.y < y.y || (x.y == y.y && x.x < y.x); }

bool less_of(ivec2 x, ivec2 y) { return x.y < y.y || (x.y == y.y && uint(x.x) < uint(y.x)); }

bool is_zero(uvec2 x) { return (x.x | x.y) == 0u; }

bool is_zero(ivec2 x) { return (x.x | x.y) == 0; }

// One bit after the other, unless both fit a word.
uvec2 quotient(uvec2 x, uvec2 y) {
  if (is_zero(y)) return uvec2(0u);
  if ((x.y | y.y) == 0u) return uvec2(x.x / y.x, 0u);
  uvec2 q = uvec2(0u), rest = uvec2(0u);
  for (int i = 63; i >= 0; --i) {
    const bool over = (rest.y >> 31) != 0u;
    rest = uvec2(rest.x << 1 | ((i >= 32 ? x.y >> (i - 32) : x.x >> i) & 1u), rest.y << 1 | rest.x >> 31);
    if (over || !less_of(rest, y)) {
      rest = sub_of(rest, y);
      if (i >= 32) q.y |= 1u << (i - 32);
      else q.x |= 1u << i;
    }
  }
  return q;
}

ivec2 negative(ivec2 x) { return sub_of(ivec2(0), x); }

ivec2 quotient(ivec2 x, ivec2 y) {
  const uvec2 q = quotient(uvec2(x.y < 0 ? negative(x) : x), uvec2(y.y < 0 ? negative(y) : y));
  return (x.y < 0) != (y.y < 0) ? negative(ivec2(q)) : ivec2(q);
}

uvec2 remainder(uvec2 x, uvec2 y) { return is_zero(y) ? uvec2(0u) : sub_of(x, mul_of(quotient(x, y), y)); }

ivec2 remainder(ivec2 x, ivec2 y) { return is_zero(y) ? ivec2(0) : sub_of(x, mul_of(quotient(x, y), y)); }

uvec2 floor_remainder(uvec2 x, uvec2 y) { return remainder(x, y); }

ivec2 floor_remainder(ivec2 x, ivec2 y) {
  const ivec2 r = remainder(x, y);
  return !is_zero(r) && (r.y < 0) != (y.y < 0) ? add_of(r, y) : r;
}

uvec2 power(uvec2 x, uvec2 y) {
  uvec2 result = uvec2(1u, 0u);
  while (!is_zero(y)) {
    if ((y.x & 1u) != 0u) result = mul_of(result, x);
    y = uvec2(y.x >> 1 | y.y << 31, y.y >> 1);
    x = mul_of(x, x);
  }
  return result;
}

ivec2 power(ivec2 x, ivec2 y) {
  if (y.y < 0) {
    if (x == ivec2(1, 0)) return x;
    if (x == ivec2(-1, -1)) return (y.x & 1) == 0 ? ivec2(1, 0) : x;
    return ivec2(0);
  }
  return ivec2(power(uvec2(x), uvec2(y)));
}
