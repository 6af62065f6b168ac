// The kernels of a plan's steps on a backend, and which constants they take: what a session runs and a compiled file holds.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"
#include "plan/plan.h"
#include "prepare/constant_store.h"

namespace sparkle {

struct StepKernels {
  std::vector<std::unique_ptr<Kernel>> kernels;  // one per step
  std::vector<ConstantUse> uses;                 // in the order of steps and of their inputs
};

// Errors: what the backend says, naming the step.
Result<StepKernels> compile_steps(const Plan& plan, Backend& backend);

}  // namespace sparkle
