#include "algorithms/stages.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle {

constexpr double kF16Error = 6e-4;  // of the largest output, where both factors are rounded to 11 bits

Reason fp16_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind == ProblemKind::conv_transpose) return Reason::not_this_family;
  return computed_in_f32(p) ? Reason::none : Reason::type_not_served;
}

// Factors of `type`.
template <OperandType type>
StagePlan rounded_stages(const AnchorCall& call) {
  GemmParams params;
  params.loader = call.problem.kind == ProblemKind::matmul ? Loader::dense : Loader::window;
  params.groups = call.problem.groups;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  params.operands = type;
  return {{whole_call(call, params)}, {}};
}

StagePlan fp16_stages(const AnchorCall& call) { return rounded_stages<OperandType::f16>(call); }

// Operators on bf16 lose nothing either: their operands are such numbers. Nothing else is rounded to eight bits of mantissa.
Reason bf16_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind == ProblemKind::conv_transpose) return Reason::not_this_family;
  return p.dtype == "bf16" ? Reason::none : Reason::type_not_served;
}

StagePlan bf16_stages(const AnchorCall& call) { return rounded_stages<OperandType::bf16>(call); }

// TF32 keeps f32's range and f16's mantissa: what it loses is what f16 loses of operands within its range.
Reason tf32_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind == ProblemKind::conv_transpose) return Reason::not_this_family;
  return p.dtype == "f32" ? Reason::none : Reason::type_not_served;
}

StagePlan tf32_stages(const AnchorCall& call) { return rounded_stages<OperandType::tf32>(call); }
double tf32_error(const AnchorCall&) { return kF16Error; }

// Operators on tensors of 16 bits lose nothing: their operands are such numbers. Others are off by up to 2^-11 each; over a sum
// errors and products grow alike, so its length does not matter, but short sums vary more.
// src/measure/checks/winograd_error_test.cc measures them.
double fp16_error(const AnchorCall& call) { return call.problem.dtype == "f16" ? 0 : kF16Error; }

Reason short_sums_applies(const AnchorCall& call) {
  if (const Reason reason = fp16_applies(call); reason != Reason::none) return reason;
  return call.fit && call.fit->f16 == Fit::never ? Reason::too_inaccurate : Reason::none;
}

// Each of a run's additions rounds by up to 2^-11 of what has been added so far; runs add up as their products do, so the
// length of the sum does not matter. Tensors of 16 bits do not make this exact, and how large their products are no plan knows:
// those that lie below f16's normal numbers or beyond its largest are lost. gemm_test.cc of the Vulkan backend measures it.
double short_sums_error(const AnchorCall&) { return kShortSumsError; }

}  // namespace sparkle
