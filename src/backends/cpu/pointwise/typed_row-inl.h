// The definition of typed_row(): instruction by instruction, each a loop over neighbouring elements.
#pragma once

#include <array>

#include "backends/cpu/pointwise/typed_row.h"
#include "families/values/convert.h"
#include "families/pointwise/integers.h"

namespace sparkle::cpu {

template <class T>
void typed_instruction(const PointwiseInstruction& step, const T* px, const T* py, const T* pz, T* out, int64_t count) {
  using U = integers::Wrapping<T>;
  const double a = step.a, b = step.b;
  switch (step.op) {
#define TYPED_LOOP(name, formula)                               \
  case PointwiseOp::name:                                       \
    for (int64_t i = 0; i < count; ++i) {                       \
      [[maybe_unused]] const T x = px[i], y = py[i], z = pz[i]; \
      out[i] = static_cast<T>(formula);                         \
    }                                                           \
    return;
#define POINTWISE_INTEGER(name, formula) TYPED_LOOP(name, formula)
#include "families/pointwise/integer_ops.inc"
#undef POINTWISE_INTEGER
#undef TYPED_LOOP
    default: return;
  }
  static_assert(sizeof(U) >= sizeof(T));
  (void)a, (void)b;
}

template <>
inline void typed_instruction<double>(const PointwiseInstruction& step, const double* px, const double* py, const double* pz,
                                      double* out, int64_t count) {
  switch (step.op) {
#define POINTWISE(name, arity, formula)                                                                            \
  case PointwiseOp::name:                                                                                          \
    for (int64_t i = 0; i < count; ++i) out[i] = evaluate(PointwiseOp::name, px[i], py[i], pz[i], step.a, step.b); \
    return;
#include "families/pointwise/ops.inc"
#undef POINTWISE
  }
}

template <class T>
void typed_row(const TypedRow& row) {
  const PointwiseParams& p = *row.params;
  T* scratch = reinterpret_cast<T*>(row.scratch);
  const auto strip = [&](int value) { return scratch + value * kTypedRow; };
  std::array<const T*, 64> values;
  values.fill(scratch);  // arguments beyond the arity are read too, whatever they hold
  for (int i = 0; i < p.inputs; ++i) {
    const TypedOperand& operand = row.inputs[static_cast<size_t>(i)];
    T* to = strip(i);
    if (operand.stride == 0) {
      T one;
      load_row(operand.type, operand.data, 0, 1, &one);
      std::fill_n(to, row.count, one);
    } else {
      load_row(operand.type, operand.data, operand.stride, row.count, to);
    }
    values[static_cast<size_t>(i)] = to;
  }
  int next = p.inputs;
  for (const PointwiseInstruction& step : p.program) {
    const auto value = [&](int i) { return values[static_cast<size_t>(i)]; };
    T* out = strip(next);
    typed_instruction<T>(step, value(step.x), value(step.y), value(step.z), out, row.count);
    values[static_cast<size_t>(next++)] = out;
  }
  store_row(row.output.type, values[static_cast<size_t>(next - 1)], row.count, row.output.data, row.output.stride);
}

}  // namespace sparkle::cpu
