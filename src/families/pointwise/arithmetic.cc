#include "families/pointwise/arithmetic.h"

#include <algorithm>
#include <vector>

#include "families/values/narrow.h"

namespace sparkle {
namespace {

// The integer type in which values of `type` are computed.
DType whole(DType type) {
  if (!is_narrow_integer(type)) return type;
  return type == DType::i4 || type == DType::i2 ? DType::i8 : DType::u8;
}

bool is_wide(DType type) { return type == DType::i32 || type == DType::u32 || type == DType::i64 || type == DType::u64; }

// What rounds nothing.
bool rounds_nothing(PointwiseOp op) {
  using enum PointwiseOp;
  constexpr PointwiseOp kExact[] = {
      identity,    constant,    min, max, select, less,  less_equal, greater, greater_equal, equal, logical_and, logical_or,
      logical_xor, logical_not, neg, abs, sign,   floor, ceil,       round,   is_nan,        relu,  clip};
  return std::find(std::begin(kExact), std::end(kExact), op) != std::end(kExact);
}

}  // namespace

bool serves_integers(PointwiseOp op) {
  switch (op) {
#define POINTWISE_INTEGER(op, formula) case PointwiseOp::op:
#include "families/pointwise/integer_ops.inc"
#undef POINTWISE_INTEGER
    return true;
    default: return false;
  }
}

DType pointwise_arithmetic(std::span<const DType> operands, DType result) {
  const auto is_real = [](DType type) { return is_float(type) || is_narrow_float(type); };
  bool real = is_real(result), wide_integer = false, real_operand = false, twice = result == DType::f64;
  for (DType type : operands) {
    real_operand |= is_real(type);
    wide_integer |= is_wide(type);
    twice |= type == DType::f64;
  }
  if (twice || ((real_operand || is_narrow_float(result)) && wide_integer)) return DType::f64;  // narrow: rounded once
  if (real || real_operand) return DType::f32;
  for (DType type : operands)
    if (type != DType::boolean) return whole(type);
  return result == DType::boolean ? DType::f32 : whole(result);
}

DType pointwise_arithmetic(std::span<const TensorDesc> operands, const TensorDesc& result) {
  std::vector<DType> types;
  for (const TensorDesc& desc : operands) types.push_back(desc.dtype);
  return pointwise_arithmetic(types, result.dtype);
}

bool is_exact(const Stage& stage) {
  const auto& program = get<PointwiseParams>(stage.params).program;
  return !is_float(pointwise_arithmetic(stage.inputs, stage.outputs[0])) ||
         std::all_of(program.begin(), program.end(), [](const PointwiseInstruction& step) { return rounds_nothing(step.op); });
}

}  // namespace sparkle
