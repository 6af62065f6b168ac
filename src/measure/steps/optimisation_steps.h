// Optimisation steps: the candidates for one problem that show what each pattern brings - from plain loops on one core up to
// every algorithm that applies (`bench --ladder`), and the implicit GEMM with one pattern off at a time (the ablation). The
// algorithms are those of the list that the planner takes its choice from, so a new one is a new step.
#pragma once

#include "prepare/layer_planner.h"

namespace sparkle {

struct OptimisationStep {
  std::string name;
  std::string what;       // one line: what it does, or what is switched off
  bool one_core = false;  // on one thread, whatever the session has
  Choice choice;
  std::string absent;  // why this problem has no such step; empty: it has
  // On feature maps in the other order than the rest: plane by plane (NCHW) where theirs lie channels last, or the reverse.
  bool other_layout = false;
};

// `planes`: feature maps lie plane by plane. Errors: no_kernel where the planner itself finds no candidate.
Result<std::vector<OptimisationStep>> optimisation_steps_of(const Problem& problem, const Device& device,
                                                            const PlanOptions& options, bool planes = false);
// The same with their kernels tried: what failed on this driver is absent, the planner's choice is the next best.
Result<std::vector<OptimisationStep>> optimisation_steps_on(Backend& backend, const Problem& problem,
                                                            const PlanOptions& options, bool planes = false);
// The first is the planner's implicit GEMM with everything on; on GPUs the one by tiles in shared memory.
Result<std::vector<OptimisationStep>> ablation_of(const Problem& problem, const Device& device, const PlanOptions& options);
Result<std::vector<OptimisationStep>> ablation_on(Backend& backend, const Problem& problem, const PlanOptions& options);

}  // namespace sparkle
