// Choices that optimisation steps are made of (optimisation_steps.h): the planner's product, the same with something changed,
// and the kernels that stood in its place before it was one.
#pragma once

#include "families/registry.h"
#include "families/gemm/gemm.h"
#include "families/gemm/scalar_unit.h"
#include "families/loops/tile_schedule.h"
#include "measure/steps/optimisation_steps.h"

namespace sparkle {

void add_stage(Choice& choice, StageUse use, Schedule schedule, const Device& device);
// A stage by the schedule that the planner gives it. Algorithm and variant are the step's own.
Status add_planned(Choice& choice, StageUse use, const Device& device, PlanOptions options);

// The planner's implicit GEMM.
Result<Choice> gemm_of(const AnchorCall& call, const Device& device, PlanOptions options);
inline constexpr std::string_view kMatrix = "matrix_";  // how algorithms of products on rounded operands are called
// The gemm family's variant for the call, by whichever algorithm it is for; on matrix units operands are rounded where they
// have to be. Errors: no_kernel.
Result<Choice> choice_of(std::string_view variant, const AnchorCall& call, const Device& device, PlanOptions options);

template <class S>
const S* schedule_of(const Choice& gemm) {
  return gemm.schedules.size() == 1 ? get_if<S>(&gemm.schedules[0]) : nullptr;
}
inline const GemmSchedule* tiles_of(const Choice& gemm) { return schedule_of<GemmSchedule>(gemm); }

// The same stage by a schedule in which `change` has switched something off.
template <class S = GemmSchedule, class Change>
Choice changed(const Choice& gemm, const Device& device, Change change) {
  S schedule = *schedule_of<S>(gemm);
  change(schedule);
  Choice choice;
  choice.algorithm = "gemm";
  add_stage(choice, gemm.plan.stages[0], schedule, device);
  return choice;
}
void one_by_one(GemmSchedule& s);
template <class S>
void scalar(S& s) {
  s.unit = kScalarUnit;
}

// The window's pixels of every output side by side in memory, [pixels, C*R*S], then a product of two matrices. `permuted`: the
// product is [K, pixels], as textbooks have it, and a copy of its own lays it out as y.
Result<Choice> im2col_of(const AnchorCall& call, const Device& device, const PlanOptions& options, bool permuted = false);
// As a step, or why there is none.
void set_im2col(OptimisationStep& step, const AnchorCall& call, const Device& device, const PlanOptions& options,
                bool permuted);
// The gemm family's product by tiles in shared memory on feature maps in the other order than `planes` says, by the schedule of
// `tiles` where there is one, else by the planner's for them.
OptimisationStep in_other_layout(const Problem& problem, const Device& device, const PlanOptions& options, bool planes,
                                 const TileSchedule* tiles = nullptr);
// The sums alone, then bias and activation in a pass of their own.
Result<Choice> unfused(const AnchorCall& call, const Choice& gemm, const Device& device, const PlanOptions& options);

}  // namespace sparkle
