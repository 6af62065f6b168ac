// Integer stages of the gemm and depthwise families: 8-bit operands, sums of 32 bits. (b may hold i16: constant filters less
// their zero point, which take nine bits.) A stage is one where its left operand holds 8-bit integers. Operands: a, b, then
// those of the epilogue (scale f32, bias i32), then the zero points of a, of b, and, where the epilogue scales, of y:
//   sum = sum of (a - a_zero) * (b - b_zero[k]) + bias[k]        in 32 bits, wrapping
//   y = sum (i32), or where the epilogue scales
//   y = clamp(round_to_even(float(sum) * scale[k]) + y_zero)     in the range of y's type and, with clip, within [a, b]
// Padding counts as a_zero. The factor, the rounding and the bounds are those of one fp32 multiplication: exact on any device.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

// Whether a stage with these inputs sums integers.
bool is_integer(const std::vector<TensorDesc>& inputs);

// Where the operands lie in the list; -1 for those that are not there.
struct IntegerOperands {
  int scale = -1, bias = -1, a_zero = -1, b_zero = -1, y_zero = -1;
  int count = 0;  // of all inputs
};
IntegerOperands integer_operands(const Epilogue& epilogue);

// The values that y may take.
struct IntegerRange {
  int64_t low = 0, high = 0;
};
IntegerRange range_of(DType type);
IntegerRange output_range(DType type, const Epilogue& epilogue);

// The definition of requantisation, in fp32.
int32_t requantized(int32_t sum, float scale, int32_t zero, const IntegerRange& range);

// Plain loops in 64 bits, any layout and stride: gemm's window loader in groups, its dense loader, and depthwise.
void integer_window_reference(const Window& window, int64_t groups, const Epilogue& epilogue,
                              std::span<const TensorView> inputs, const TensorView& output);
void integer_dense_reference(const Epilogue& epilogue, std::span<const TensorView> inputs, const TensorView& output);

// Errors: type_not_served, internal (operands missing), naming what does not fit.
Status check_integer_stage(const std::vector<TensorDesc>& inputs, const TensorDesc& output, const Epilogue& epilogue);

}  // namespace sparkle
