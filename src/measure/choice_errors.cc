#include "measure/choice_errors.h"

#include <algorithm>
#include <cmath>

#include "families/gemm/gemm.h"
#include "families/gemm/stored_weights.h"

namespace sparkle {
namespace {

bool rounds_weights(const Choice& choice) {
  return !choice.schedules.empty() && stored_weights(variant_of(choice.schedules[0])) != DType::f32;
}

}  // namespace

double depth_of(const Problem& p) {
  return p.kind == ProblemKind::matmul ? static_cast<double>(p.depth) : static_cast<double>(p.c / p.groups * p.window.taps());
}

double bound_on_whole_numbers(const Choice& choice) { return rounds_weights(choice) ? 0 : choice.error; }

double bound_on_random(const Choice& choice, const Problem& problem) {
  const Stage* const stage = choice.plan.stages.empty() ? nullptr : &choice.plan.stages[0].stage;
  if (stage && stage->family() == Family::gemm && multiplies_float8(*stage)) return choice.error + kFloat8SumsError;
  return rounds_weights(choice) ? choice.error * std::clamp(std::sqrt(depth_of(problem)), 1.0, 4.0) : choice.error;
}

}  // namespace sparkle
