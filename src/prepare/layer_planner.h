// The door from a layer to kernels that can run: what ModelPlanner is for models, for those who time and tune single layers.
#pragma once

#include "plan/choose/choose.h"
#include "prepare/kernels.h"

namespace sparkle {

// The planner's choice for the call on this backend, its kernels tried. Errors: those of choose(), and what self-tests say
// beside failed_probe.
Result<Choice> plan_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options);

// Every candidate that a measurement may find best (plan/choose/choose.h); of each variant the candidate of least cost has been
// tried. Of the others' schedules the outputs are for the measurement to check: one that a driver gets wrong denies no variant.
Result<std::vector<Choice>> candidates_of_layer(Backend& backend, const AnchorCall& call, const PlanOptions& options);

// Of each variant among the choices the first one is tried. Errors: failed_probe where one of them failed its self-test.
Status try_variants(Backend& backend, std::span<const Choice* const> choices);

// The kernels of a choice whose variants have been tried, one per stage. `constants`: bit i of entry s tells that operand i of
// stage s never changes.
Result<Kernels> make_kernels(Backend& backend, const Choice& choice, std::span<const uint32_t> constants);

}  // namespace sparkle
