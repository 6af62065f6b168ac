// The operations of pointwise programs on numbers in registers: each is its definition in families/pointwise/ops.inc
// (integer_ops.inc), in the type that the program is computed in. The interpreter calls them, and programs that are printed
// with a model and compiled by NVRTC do, which is given this text.
#pragma once

#include <cmath>

#include "backends/cuda/kernels/elements/cells.cuh"

#ifdef __CUDACC__
#pragma nv_diag_suppress 186  // definitions for all integers ask unsigned ones whether they are below zero
#endif

namespace sparkle::cuda {
namespace pointwise {

enum class Op : uint8_t {
#define POINTWISE(op, arity, formula) op,
#include "families/pointwise/ops.inc"
#undef POINTWISE
};

// The names that ops.inc uses, for T.
template <class T>
struct Real {
  enum class Activation : uint8_t {
    relu,
    clip,
    leaky_relu,
    elu,
    selu,
    sigmoid,
    hard_sigmoid,
    tanh,
    silu,
    hard_swish,
    gelu,
    gelu_tanh,
    softplus,
    mish
  };
  SPARKLE_DEVICE static T bounded(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
  SPARKLE_DEVICE static T sigmoid(T x) { return 1 / (1 + std::exp(-x)); }
  SPARKLE_DEVICE static T softplus(T x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }
  SPARKLE_DEVICE static T activate(Activation activation, T a, T b, T x) {
    switch (activation) {
      case Activation::relu: return x < 0 ? 0 : x;
      case Activation::clip: return x < a ? a : x > b ? b : x;
      case Activation::leaky_relu: return x < 0 ? a * x : x;
      case Activation::elu: return x < 0 ? a * std::expm1(x) : x;
      case Activation::selu: return b * (x < 0 ? a * std::expm1(x) : x);
      case Activation::sigmoid: return sigmoid(x);
      case Activation::hard_sigmoid: return bounded(a * x + b, 0, 1);
      case Activation::tanh: return std::tanh(x);
      case Activation::silu: return x * sigmoid(x);
      case Activation::hard_swish: return x * bounded(x / 6 + T(0.5), 0, 1);
      case Activation::gelu: return T(0.5) * x * (1 + std::erf(x * T(0.70710678118654752440)));
      case Activation::gelu_tanh:
        return T(0.5) * x * (1 + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
      case Activation::softplus: return softplus(x);
      case Activation::mish: return x * std::tanh(softplus(x));
    }
    return x;
  }
  SPARKLE_DEVICE static T floor_remainder(T x, T y) {
    const T r = std::fmod(x, y);
    if (r == 0) return std::copysign(T(0), y);
    return (r < 0) != (y < 0) ? r + y : r;
  }
  // No program for GPUs has it (families/pointwise).
  SPARKLE_DEVICE static T to_power_of_two(T x, T, T) { return x; }

  template <Op kOp>
  SPARKLE_DEVICE static T evaluate(T x, T y, T z, T a, T b) {
#define POINTWISE(op, arity, formula) \
  if constexpr (kOp == Op::op) return static_cast<T>(formula);
#include "families/pointwise/ops.inc"
#undef POINTWISE
  }
};

// The names that integer_ops.inc uses, for integers of 64 bits.
namespace integers {
template <class T>
SPARKLE_DEVICE T from_double(double value) {
  if constexpr (kIsSigned<T>) return truncated<T>(value, INT64_MIN, INT64_MAX);
  else return truncated<T>(value, T{0}, UINT64_MAX);
}
template <class T>
SPARKLE_DEVICE T quotient(T x, T y) {
  if (y == 0) return 0;
  if (kIsSigned<T> && y == static_cast<T>(-1)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  return x / y;
}
template <class T>
SPARKLE_DEVICE T remainder(T x, T y) {
  return y == 0 || (kIsSigned<T> && y == static_cast<T>(-1)) ? 0 : x % y;
}
template <class T>
SPARKLE_DEVICE T floor_remainder(T x, T y) {
  const T r = remainder(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
template <class T>
SPARKLE_DEVICE T power(T x, T y) {
  if (y < 0) {
    if (x == 1) return 1;
    if (x == static_cast<T>(-1)) return y % 2 == 0 ? T(1) : x;
    return 0;
  }
  uint64_t result = 1, base = static_cast<uint64_t>(x);
  for (auto n = static_cast<uint64_t>(y); n != 0; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return static_cast<T>(result);
}
template <class T>
SPARKLE_DEVICE T bounded(T x, double low, double high) {
  if (static_cast<double>(x) < low) x = from_double<T>(std::ceil(low));
  if (static_cast<double>(x) > high) x = from_double<T>(std::floor(high));
  return x;
}
template <class T>
SPARKLE_DEVICE T scaled(T x, double a, double b) {
  return from_double<T>(a * static_cast<double>(x) + b);
}

// One operation that integers have.
template <Op kOp, class T>
SPARKLE_DEVICE T evaluate(T x, [[maybe_unused]] T y, [[maybe_unused]] T z, [[maybe_unused]] double a, [[maybe_unused]] double b) {
  using U = uint64_t;
#define POINTWISE_INTEGER(op, formula) \
  if constexpr (kOp == Op::op) return formula;
#include "families/pointwise/integer_ops.inc"
#undef POINTWISE_INTEGER
}
}  // namespace integers

}  // namespace pointwise
}  // namespace sparkle::cuda
