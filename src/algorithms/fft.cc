#include <cmath>

#include "algorithms/stages.h"
#include "families/fft/fft.h"

namespace sparkle {

Reason fft_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  // A third axis would be one more pass over planes that the L2 does not hold.
  if (p.kind != ProblemKind::conv || p.rank > 2) return Reason::not_this_family;
  if (!computed_in_f32(p)) return Reason::type_not_served;
  // Filters of three taps and fewer spare few products: what is predicted there lies within the errors of predictions.
  const Triple& filter = p.window.filter;
  return filter[1] > 3 || filter[2] > 3 ? Reason::none : Reason::filter_not_served;
}

StagePlan fft_stages(const AnchorCall& call) {
  FftParams params;
  params.groups = call.problem.groups;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  return {{whole_call(call, params)}, {}};
}

// Each pass of the transforms rounds every value once more, and the outputs are made of as many values as inputs: errors grow
// with the logarithm of the size only. src/measure/checks/fft_error_test.cc measures them.
double fft_error(const AnchorCall& call) {
  const Window& w = call.problem.window;
  double passes = 3;
  for (size_t i = 0; i < 3; ++i) passes += std::log2(static_cast<double>(w.filter[i]) * static_cast<double>(w.dilation[i]));
  return 1e-7 * passes;
}

}  // namespace sparkle
