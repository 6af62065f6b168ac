// The door from a layer to kernels that can run: what ModelPlanner is for models, for those who time and tune single layers.
#pragma once

#include "plan/choose.h"
#include "prepare/kernels.h"

namespace sparkle {

// The planner's choice for the call on this backend, its kernels tried. Errors: those of choose(), and what trials say beside
// failed_probe.
Result<Choice> plan_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options);

// Every candidate that a measurement may find best (plan/choose.h), the kernels of all of them tried.
Result<std::vector<Choice>> candidates_of_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options);

// Whether the kernels of a choice may be used here. Errors: failed_probe where one of them failed its trial.
Status try_choice(Backend& backend, const Choice& choice);

// The kernels of a choice, one per stage. `constants`: bit i of entry s tells that operand i of stage s never changes.
Result<Kernels> make_kernels(Backend& backend, const Choice& choice, std::span<const uint32_t> constants);

}  // namespace sparkle
