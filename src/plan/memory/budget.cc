#include "plan/memory/budget.h"

#include <algorithm>
#include <optional>
#include <set>

#include "families/loops/packed.h"

namespace sparkle {

int64_t packed_bytes(const Choice& choice, const Device& device) {
  int64_t bytes = 0;
  for (size_t i = 0; i < choice.plan.stages.size(); ++i)
    bytes += packed_weight_bytes(choice.plan.stages[i].stage, choice.schedules[i], device);
  return bytes;
}

int64_t packed_constant_bytes(const Plan& plan, const Device& device) {
  int64_t bytes = 0;
  std::set<std::pair<int, int64_t>> counted;  // constant and packed size
  for (const PlanStep& step : plan.steps)
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const PlanTensor& t = plan.tensors[static_cast<size_t>(step.inputs[i])];
      if (t.kind != PlaceKind::constant) continue;
      const int64_t packed = i == 1 ? packed_weight_bytes(step.stage, step.schedule, device) : 0;
      if (!counted.insert({t.index, packed}).second) continue;
      bytes += packed > 0 ? packed : plan.constants[static_cast<size_t>(t.index)].value.size_bytes();
    }
  return bytes;
}

int64_t planned_bytes(const Plan& plan, const Device& device) {
  int64_t bytes = plan.arena_bytes + plan.host_arena_bytes + packed_constant_bytes(plan, device);
  for (int t : plan.inputs) bytes += plan.tensors[static_cast<size_t>(t)].desc.bytes();
  for (int t : plan.outputs) bytes += plan.tensors[static_cast<size_t>(t)].desc.bytes();
  return bytes;
}

Status check_budget(const std::string& who, int64_t need, int64_t budget, const std::string& smaller) {
  if (budget <= 0 || need <= budget) return ok();
  return Error{Reason::over_memory_budget, who + " needs " + std::to_string(need) + " bytes, the memory budget is " +
                                               std::to_string(budget) + "; give " + smaller + " or a larger --memory-budget."};
}

bool save_memory(std::vector<Choice>& choices, int64_t bytes, const Device& device, const ChooseAgain& again) {
  struct Saving {
    size_t step = 0;
    int64_t saved = 0;
    double price = 0;  // seconds for each byte
    Choice choice;
  };
  std::vector<Saving> candidates;
  for (size_t i = 0; i < choices.size(); ++i) {
    const int64_t packed = packed_bytes(choices[i], device);
    if (packed == 0) continue;
    auto other = again(i, packed - 1);
    if (!other.ok()) continue;
    const int64_t saved = packed - packed_bytes(*other, device);
    if (saved > 0)
      candidates.push_back(
          {i, saved, (other->cost.seconds - choices[i].cost.seconds) / static_cast<double>(saved), std::move(*other)});
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Saving& a, const Saving& b) { return a.price < b.price; });
  for (Saving& candidate : candidates) {
    if (bytes <= 0) break;
    bytes -= candidate.saved;
    choices[candidate.step] = std::move(candidate.choice);
  }
  return !candidates.empty();
}

}  // namespace sparkle
