// Pointwise programs, interpreted: one thread, some elements, values in slots (operations.cuh has the operations).
#pragma once

#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/elements/operations.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/elements/pointwise_record.h"
#include "families/values/narrow.h"

namespace sparkle::cuda {
namespace pointwise {

// Operations by their number.
template <class T>
SPARKLE_DEVICE T evaluate(Op op, T x, T y, T z, T a, T b) {
  switch (op) {
#define POINTWISE(op, arity, formula) \
  case Op::op: return Real<T>::template evaluate<Op::op>(x, y, z, a, b);
#include "families/pointwise/ops.inc"
#undef POINTWISE
  }
  return x;
}
namespace integers {
template <class T>
SPARKLE_DEVICE T evaluate(Op op, T x, T y, T z, double a, double b) {
  switch (op) {
#define POINTWISE_INTEGER(op, formula) \
  case Op::op: return evaluate<Op::op, T>(x, y, z, a, b);
#include "families/pointwise/integer_ops.inc"
#undef POINTWISE_INTEGER
    default: return x;
  }
}
// What is left of a value in a narrower type.
template <class T>
SPARKLE_DEVICE T wrapped(DType type, T v) {
  if constexpr (!kIsSigned<T>) return v;
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

// Elements of fewer than 16 bits by families/values/narrow.h, which programs that are compiled with a model are not given.
template <class T>
SPARKLE_DEVICE T loaded_narrow(DType type, const void* from, int64_t at) {
  if (!is_narrow(type)) return loaded<T>(type, from, at);
  return static_cast<T>(narrow::decode(type, load_global(static_cast<const uint8_t*>(from) + at)));
}
template <class T>
SPARKLE_DEVICE void stored_narrow(DType type, void* to, int64_t at, T value) {
  if (!is_narrow(type)) return stored(type, to, at, value);
  uint8_t code = 0;
  if (is_narrow_integer(type)) {
    code = static_cast<uint8_t>(as_integer<int64_t>(value, INT64_MIN, INT64_MAX)) & ((1u << stored_bits(type)) - 1);
  } else if constexpr (!kIsInteger<T>) {
    code = type == DType::f8e8m0 ? narrow::encode_power(value, PowerRounding::up, true)
                                 : narrow::encode(narrow::format_of(type), value);
  }
  store_global(static_cast<uint8_t*>(to) + at, code);
}

// kNarrow: operands and result may have elements of fewer than 16 bits.
template <class T, bool kNarrow = false>
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
      for (int e = 0; e < kPointwiseEach; ++e) {
        const int64_t at = offset(step.x, e);
        if constexpr (kNarrow) slots[step.to][e] = loaded_narrow<T>(type, record.x[step.x], at);
        else slots[step.to][e] = loaded<T>(type, record.x[step.x], at);
      }
      continue;
    }
    const auto op = static_cast<pointwise::Op>(step.op);
    SPARKLE_ROLLED
    for (int e = 0; e < kPointwiseEach; ++e) {
      const T x = slots[step.x][e], y = slots[step.y][e], z = slots[step.z][e];
      if constexpr (kIsInteger<T>) {
        slots[step.to][e] =
            pointwise::integers::wrapped(arithmetic, pointwise::integers::evaluate(op, x, y, z, step.a, step.b));
      } else {
        if constexpr (kNarrow) {
          if (op == pointwise::Op::power_of_two) {
            slots[step.to][e] = static_cast<T>(to_power_of_two(static_cast<double>(x), step.a, step.b));
            continue;
          }
        }
        slots[step.to][e] = pointwise::evaluate<T>(op, x, y, z, static_cast<T>(step.a), static_cast<T>(step.b));
      }
    }
  }
  SPARKLE_UNROLL
  for (int e = 0; e < kPointwiseEach; ++e) {
    if (first + static_cast<uint32_t>(e * kPointwiseThreads) >= record.count) continue;
    const auto type = static_cast<DType>(record.type[kPointwiseInputs]);
    if constexpr (kNarrow) stored_narrow(type, record.y, offset(kPointwiseInputs, e), slots[record.result][e]);
    else stored(type, record.y, offset(kPointwiseInputs, e), slots[record.result][e]);
  }
}

}  // namespace sparkle::cuda
