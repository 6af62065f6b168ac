// Pointwise programs, interpreted: one thread, some elements, values in slots. Every operation is its definition in
// families/pointwise/ops.inc (integer_ops.inc), in the type that the program is computed in.
#pragma once

#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/elements/pointwise_record.h"

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
  enum class Activation : uint8_t { relu, clip, leaky_relu, elu, selu, sigmoid, hard_sigmoid, tanh, silu, hard_swish, gelu, gelu_tanh, softplus, mish };
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

  SPARKLE_DEVICE static T evaluate(Op op, T x, T y, T z, T a, T b) {
    switch (op) {
#define POINTWISE(op, arity, formula) \
  case Op::op: return static_cast<T>(formula);
#include "families/pointwise/ops.inc"
#undef POINTWISE
    }
    return x;
  }
};

// The names that integer_ops.inc uses.
namespace integers {
template <class T>
SPARKLE_DEVICE T quotient(T x, T y) {
  if (y == 0) return 0;
  if (y == static_cast<T>(-1)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  return x / y;
}
template <class T>
SPARKLE_DEVICE T remainder(T x, T y) {
  return y == 0 || y == static_cast<T>(-1) ? 0 : x % y;
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
  if (static_cast<double>(x) < low) x = truncated<T>(std::ceil(low), INT64_MIN, INT64_MAX);
  if (static_cast<double>(x) > high) x = truncated<T>(std::floor(high), INT64_MIN, INT64_MAX);
  return x;
}
template <class T>
SPARKLE_DEVICE T scaled(T x, double a, double b) {
  return truncated<T>(a * static_cast<double>(x) + b, INT64_MIN, INT64_MAX);
}

SPARKLE_DEVICE int64_t evaluate(Op op, int64_t x, int64_t y, int64_t z, double a, double b) {
  using T = int64_t;
  using U = uint64_t;
  switch (op) {
#define POINTWISE_INTEGER(op, formula) \
  case Op::op: return formula;
#include "families/pointwise/integer_ops.inc"
#undef POINTWISE_INTEGER
    default: return x;
  }
}
// What is left of a value in a narrower type.
SPARKLE_DEVICE int64_t wrapped(DType type, int64_t v) {
  switch (type) {
    case DType::i8: return static_cast<int8_t>(v);
    case DType::u8: return static_cast<uint8_t>(v);
    case DType::i16: return static_cast<int16_t>(v);
    case DType::u16: return static_cast<uint16_t>(v);
    case DType::i32: return static_cast<int32_t>(v);
    case DType::u32: return static_cast<uint32_t>(v);
    default: return v;
  }
}
}  // namespace integers

}  // namespace pointwise

template <class T>
SPARKLE_DEVICE void run_program(const PointwiseRecord& record) {
  const uint32_t first = block_x() * (kPointwiseThreads * kPointwiseEach) + thread_id();
  const auto arithmetic = static_cast<DType>(record.arithmetic);
  T slots[kPointwiseSlots][kPointwiseEach];
  int32_t place[kPointwiseEach][kPointwiseAxes] = {};
  SPARKLE_UNROLL
  for (int e = 0; e < kPointwiseEach; ++e) {
    uint32_t index = first + static_cast<uint32_t>(e * kPointwiseThreads);
    if (index >= record.count) index = record.count - 1;
    SPARKLE_UNROLL
    for (int i = kPointwiseAxes - 1; i >= 0; --i)
      if (i < record.rank) place[e][i] = static_cast<int32_t>(fast_divmod(index, record.size[i]));
  }
  const auto offset = [&](int operand, int e) {
    int64_t at = 0;
    SPARKLE_UNROLL
    for (int i = 0; i < kPointwiseAxes; ++i)
      if (i < record.rank) at += int64_t{place[e][i]} * record.strides[operand][i];
    return at;
  };
  SPARKLE_ROLLED
  for (int s = 0; s < record.steps; ++s) {
    const PointwiseStep& step = record.step[s];
    if (step.op == kPointwiseLoad) {
      const auto type = static_cast<DType>(record.type[step.x]);
      SPARKLE_UNROLL
      for (int e = 0; e < kPointwiseEach; ++e) slots[step.to][e] = loaded<T>(type, record.x[step.x], offset(step.x, e));
      continue;
    }
    const auto op = static_cast<pointwise::Op>(step.op);
    SPARKLE_ROLLED
    for (int e = 0; e < kPointwiseEach; ++e) {
      const T x = slots[step.x][e], y = slots[step.y][e], z = slots[step.z][e];
      if constexpr (kIsInteger<T>) {
        slots[step.to][e] = pointwise::integers::wrapped(
            arithmetic, pointwise::integers::evaluate(op, x, y, z, step.a, step.b));
      } else {
        slots[step.to][e] =
            pointwise::Real<T>::evaluate(op, x, y, z, static_cast<T>(step.a), static_cast<T>(step.b));
      }
    }
  }
  SPARKLE_UNROLL
  for (int e = 0; e < kPointwiseEach; ++e)
    if (first + static_cast<uint32_t>(e * kPointwiseThreads) < record.count)
      stored(static_cast<DType>(record.type[kPointwiseInputs]), record.y, offset(kPointwiseInputs, e), slots[record.result][e]);
}

}  // namespace sparkle::cuda
