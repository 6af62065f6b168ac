// Memory budgets: where the fastest plan needs more than there is room for, steps whose packed weights are large (Winograd's
// are 1.8 to 7 times the model's) take a candidate that needs less, those first that lose least time for each byte saved.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/choose/choose.h"
#include "plan/plan.h"

namespace sparkle {

// Bytes of packed weights that a choice brings.
int64_t packed_bytes(const Choice& choice, const Device& device);

// What the plan's constants occupy as kernels pack them, each once for every packed form: an estimate for families that do not
// say what they pack.
int64_t packed_constant_bytes(const Plan& plan, const Device& device);

// What a run of the plan occupies: arena, constants as kernels pack them, inputs and outputs.
int64_t planned_bytes(const Plan& plan, const Device& device);

// The one word on a budget (0: none): over_memory_budget "WHO needs so many bytes, ...; give SMALLER or a larger
// --memory-budget." where it is exceeded.
Status check_budget(const std::string& who, int64_t need, int64_t budget, const std::string& smaller = "smaller inputs");

// Chooses again for draft step `step`, with packed weights of at most so many bytes.
using ChooseAgain = std::function<Result<Choice>(size_t step, int64_t most_packed)>;

// Changes choices until `bytes` less are needed or nothing is left to change; true where it changed any.
bool save_memory(std::vector<Choice>& choices, int64_t bytes, const Device& device, const ChooseAgain& again);

}  // namespace sparkle
