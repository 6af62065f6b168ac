#include "prepare/layer_planner.h"

namespace sparkle {
namespace {

void add_requests(const Choice& choice, std::vector<KernelRequest>& requests) {
  for (size_t s = 0; s < choice.plan.stages.size(); ++s)
    requests.push_back({&choice.plan.stages[s].stage, &choice.schedules[s], 0, ""});
}

}  // namespace

Status try_choice(Backend& backend, const Choice& choice) {
  if (choice.without_kernel) return ok();  // compiling says so
  std::vector<KernelRequest> requests;
  add_requests(choice, requests);
  return try_kernels(backend, requests);
}

Result<Choice> plan_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options) {
  return plan_until_usable([&] { return choose(call, backend.device(), options); },
                           [&](const Choice& choice) { return try_choice(backend, choice); });
}

Result<std::vector<Choice>> candidates_of_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options) {
  return plan_until_usable([&] { return candidates_of(call, backend.device(), options); },
                           [&](const std::vector<Choice>& found) {
                             std::vector<KernelRequest> requests;
                             for (const Choice& candidate : found)
                               if (!candidate.without_kernel) add_requests(candidate, requests);
                             return try_kernels(backend, requests);
                           });
}

Result<Kernels> make_kernels(Backend& backend, const Choice& choice, std::span<const uint32_t> constants) {
  std::vector<KernelRequest> requests;
  add_requests(choice, requests);
  for (size_t s = 0; s < requests.size(); ++s) requests[s].constants = constants[s];
  return make_kernels(backend, requests);
}

}  // namespace sparkle
