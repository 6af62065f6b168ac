#include "algorithms/stages.h"

namespace sparkle {

Reason halves_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind == ProblemKind::conv_transpose) return Reason::not_this_family;
  return p.dtype == "f32" || p.dtype == "f16" ? Reason::none : Reason::type_not_served;
}

StagePlan halves_stages(const AnchorCall& call) {
  GemmParams params;
  params.loader = call.problem.kind == ProblemKind::matmul ? Loader::dense : Loader::window;
  params.groups = call.problem.groups;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  params.halves = true;
  return {{whole_call(call, params)}, {}};
}

// Operators on tensors of 16 bits lose nothing: their operands are such numbers. Others are off by up to 2^-11 each; over a sum
// errors and products grow alike, so its length does not matter, but short sums vary more. halves_test.cc measures them.
double halves_error(const AnchorCall& call) { return call.problem.dtype == "f16" ? 0 : 6e-4; }

}  // namespace sparkle
