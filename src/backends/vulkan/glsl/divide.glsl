#ifndef DIVIDE_GLSL
#define DIVIDE_GLSL
// Division of numbers below 2^31 by what the host knows, without dividing: divisor.h has the same fields, and says why it is exact.
struct Divisor {
  uint size, factor, shift;
};
uint divided(uint n, Divisor d) {
  uint high, low;
  umulExtended(n, d.factor, high, low);
  return d.size == 1u ? n : high >> d.shift;
}
// The remainder, and n becomes the quotient.
uint fast_divmod(inout uint n, Divisor d) {
  const uint q = divided(n, d), rest = n - q * d.size;
  n = q;
  return rest;
}
#endif
