// Kernels for stages whose schedules are chosen: each variant is tried on its device before it is used there first, and what
// fails gives way to the next best. Nothing else compiles kernels to run or to measure them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"

namespace sparkle {

struct KernelRequest {
  const Stage* stage = nullptr;
  const Schedule* schedule = nullptr;
  uint32_t constants = 0;  // bit i: operand i never changes
  std::string name;        // of the step, for errors; may be empty
};
using Kernels = std::vector<std::unique_ptr<Kernel>>;

// Tries, then compiles. Errors: failed_probe where a variant fails its self-test, which the device denies from then on; what
// the backend says, naming the step.
Result<Kernels> make_kernels(Backend& backend, std::span<const KernelRequest> requests);

// The self-tests alone.
Status try_kernels(Backend& backend, std::span<const KernelRequest> requests);

// `plan` decides for the device as it is now, `use` compiles or tries what it decided. A plan with a kernel that has just been
// denied is made again, without it. Errors: those of both; failed_probe after 32 plans.
template <class Plan, class Use>
auto plan_until_usable(Plan&& plan, Use&& use) -> decltype(plan()) {
  constexpr int kMostPlans = 33;
  for (int plans = 1;; ++plans) {
    SPARKLE_TRY(planned, plan());
    Status usable = use(planned);
    if (usable.ok()) return planned;
    if (usable.error().reason != Reason::failed_probe || plans == kMostPlans) return usable.take_error();
  }
}

}  // namespace sparkle
