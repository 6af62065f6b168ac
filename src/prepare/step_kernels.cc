#include "prepare/step_kernels.h"

namespace sparkle {

Result<StepKernels> compile_steps(const Plan& plan, Backend& backend) {
  StepKernels all;
  std::vector<ScheduledStage> stages;
  for (const PlanStep& step : plan.steps) stages.push_back({&step.stage, &step.schedule});
  SPARKLE_CHECK(backend.try_out(stages));
  for (const PlanStep& step : plan.steps) {
    const auto constant = [&](size_t i) -> const PlanTensor* {
      const PlanTensor& t = plan.tensors[static_cast<size_t>(step.inputs[i])];
      return t.kind == PlaceKind::constant ? &t : nullptr;
    };
    uint32_t constants = 0;
    for (size_t i = 0; i < step.inputs.size() && i < 32; ++i)
      if (constant(i)) constants |= 1u << i;
    auto compiled = backend.compile(step.stage, step.schedule, constants);
    if (!compiled.ok()) {
      Error error = compiled.take_error();
      error.message = "Step '" + step.name + "' cannot be compiled: " + error.message;
      return error;
    }
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (const PlanTensor* t = constant(i))
        all.uses.push_back({static_cast<size_t>(t->index), compiled->get(), static_cast<int>(i)});
    all.kernels.push_back(std::move(*compiled));
  }
  return all;
}

}  // namespace sparkle
