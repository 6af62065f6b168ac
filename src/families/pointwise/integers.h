// Pointwise operations on integers: exact, wrapping around as two's complement does, never through a float. Division truncates
// towards zero; by zero it gives 0, as NumPy has it, and so do the remainders.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "families/values/convert.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::integers {

template <class T>
using Wrapping = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <class T>
T quotient(T x, T y) {
  if (y == 0) return 0;
  // The one quotient that does not fit: the lowest value by -1.
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(Wrapping<T>(0) - Wrapping<T>(x));
  return static_cast<T>(x / y);
}

// The sign of x, as in C.
template <class T>
T remainder(T x, T y) {
  if (y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1))) return 0;
  return static_cast<T>(x % y);
}

// The sign of y, as in Python.
template <class T>
T floor_remainder(T x, T y) {
  const T r = remainder(x, y);
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}

// A negative exponent gives the truncated reciprocal.
template <class T>
T power(T x, T y) {
  if (y < 0) {
    if (x == 1) return 1;
    if (x == static_cast<T>(-1)) return y % 2 == 0 ? T(1) : x;
    return 0;
  }
  Wrapping<T> result = 1, base = Wrapping<T>(x);
  for (auto n = static_cast<uint64_t>(y); n != 0; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return static_cast<T>(result);
}

template <class T>
T bounded(T x, double low, double high) {
  if (static_cast<double>(x) < low) x = converted<T>(std::ceil(low));
  if (static_cast<double>(x) > high) x = converted<T>(std::floor(high));
  return x;
}

// A factor and a summand that need not be whole: the result is truncated.
template <class T>
T scaled(T x, double a, double b) {
  return converted<T>(a * static_cast<double>(x) + b);
}

// One operation that integers have (serves_integers); x for any other.
template <class T>
T evaluate(PointwiseOp op, T x, [[maybe_unused]] T y, [[maybe_unused]] T z, double a, double b) {
  using U = Wrapping<T>;
  switch (op) {
#define POINTWISE_INTEGER(op, formula) \
  case PointwiseOp::op: return formula;
#include "families/pointwise/integer_ops.inc"
#undef POINTWISE_INTEGER
    default: return x;
  }
}

}  // namespace sparkle::integers
