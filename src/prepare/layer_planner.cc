#include "prepare/layer_planner.h"

#include <set>

namespace sparkle {

Status try_variants(Backend& backend, std::span<const Choice* const> choices) {
  std::vector<KernelRequest> requests;
  std::set<std::pair<Family, std::string>> seen;
  for (const Choice* choice : choices) {
    if (choice->without_kernel) continue;  // compiling says so
    for (size_t s = 0; s < choice->plan.stages.size(); ++s)
      if (const Stage& stage = choice->plan.stages[s].stage;
          seen.emplace(stage.family(), variant_of(choice->schedules[s])).second)
        requests.push_back({&stage, &choice->schedules[s], 0, ""});
  }
  return try_kernels(backend, requests);
}

Result<Choice> plan_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options) {
  return plan_until_usable([&] { return choose(call, backend.device(), options); },
                           [&](const Choice& choice) {
                             const Choice* const one = &choice;
                             return try_variants(backend, {&one, 1});
                           });
}

Result<std::vector<Choice>> candidates_of_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options) {
  return plan_until_usable([&] { return candidates_of(call, backend.device(), options); },
                           [&](const std::vector<Choice>& found) {
                             std::vector<const Choice*> all;
                             for (const Choice& candidate : found) all.push_back(&candidate);
                             Status tried = try_variants(backend, all);
                             // Which of them had no room is seen when it is measured.
                             if (!tried.ok() && tried.error().reason == Reason::out_of_memory) return ok();
                             return tried;
                           });
}

Result<Kernels> make_kernels(Backend& backend, const Choice& choice, std::span<const uint32_t> constants) {
  Kernels kernels;
  for (size_t s = 0; s < choice.plan.stages.size(); ++s) {
    SPARKLE_TRY(kernel, backend.compile(choice.plan.stages[s].stage, choice.schedules[s], constants[s]));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace sparkle
