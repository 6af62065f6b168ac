// Pointwise programs, interpreted: one thread, some elements, values in slots (operations.cuh has the operations).
#pragma once

#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/elements/operations.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/elements/pointwise_record.h"

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
SPARKLE_DEVICE int64_t evaluate(Op op, int64_t x, int64_t y, int64_t z, double a, double b) {
  switch (op) {
#define POINTWISE_INTEGER(op, formula) \
  case Op::op: return evaluate<Op::op>(x, y, z, a, b);
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
        slots[step.to][e] =
            pointwise::integers::wrapped(arithmetic, pointwise::integers::evaluate(op, x, y, z, step.a, step.b));
      } else {
        slots[step.to][e] = pointwise::evaluate<T>(op, x, y, z, static_cast<T>(step.a), static_cast<T>(step.b));
      }
    }
  }
  SPARKLE_UNROLL
  for (int e = 0; e < kPointwiseEach; ++e)
    if (first + static_cast<uint32_t>(e * kPointwiseThreads) < record.count)
      stored(static_cast<DType>(record.type[kPointwiseInputs]), record.y, offset(kPointwiseInputs, e), slots[record.result][e]);
}

}  // namespace sparkle::cuda
