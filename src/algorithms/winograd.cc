#include <cmath>

#include "algorithms/stages.h"
#include "families/winograd/winograd.h"

namespace sparkle {

Reason winograd_applies(const AnchorCall& call) {
  const Problem& p = call.problem;
  if (p.kind != ProblemKind::conv || p.rank != 2) return Reason::not_this_family;
  if (!computed_in_f32(p)) return Reason::type_not_served;
  const Window& w = p.window;
  if (w.filter != Triple{1, 3, 3} || w.stride != Triple{1, 1, 1} || w.dilation != Triple{1, 1, 1})
    return Reason::filter_not_served;
  return p.groups == 1 ? Reason::none : Reason::groups_not_served;
}

template <int kTile>
StagePlan winograd_stages(const AnchorCall& call) {
  WinogradParams params;
  params.tile = kTile;
  params.window = call.problem.window;
  params.epilogue = call.problem.epilogue;
  return {{whole_call(call, params)}, {}};
}

// Errors of the transforms are those of one channel, summed at random over the channels, while the outputs grow alike: a share
// that no number of channels changes. The sums' own errors grow with the root of their length beside it. Squares add up:
// sqrt(a^2 + b^2 C). The transforms of all three tiles err like sums over 12 channels; with few channels, whose filters are not
// typical, the most that was seen (tiles of 6x6, one channel, NEON) was 4.6 times the factor, and nearly half as much again
// is that of 45. src/measure/checks/winograd_error_test.cc measures them.
template <int kTile>
double winograd_error(const AnchorCall& call) {
  constexpr double kFactor = kTile == 2 ? 8e-8 : kTile == 4 ? 3e-7 : 2e-6, kTransforms = 45;
  return kFactor * std::sqrt(static_cast<double>(call.problem.c) + kTransforms);
}

template StagePlan winograd_stages<2>(const AnchorCall&);
template StagePlan winograd_stages<4>(const AnchorCall&);
template StagePlan winograd_stages<6>(const AnchorCall&);
template double winograd_error<2>(const AnchorCall&);
template double winograd_error<4>(const AnchorCall&);
template double winograd_error<6>(const AnchorCall&);

}  // namespace sparkle
