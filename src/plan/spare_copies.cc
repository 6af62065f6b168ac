#include "plan/spare_copies.h"

#include <algorithm>

namespace sparkle {
namespace {

// Only these kernels' predictions know what planes cost them.
constexpr std::string_view kReadsPlanes = "direct";
constexpr int64_t kFewChannels = 4;

// The one step that reads a value, which nothing else touches after it was written; -1 where there is none.
int only_reader(const Draft& draft, int value) {
  const int buffer = draft.values[static_cast<size_t>(value)].buffer;
  if (draft.buffers[static_cast<size_t>(buffer)].kind != PlaceKind::arena) return -1;
  int reader = -1, touches = 0;
  for (size_t s = 0; s < draft.steps.size(); ++s) {
    const auto count = [&](const std::vector<int>& values) {
      return static_cast<int>(std::count_if(values.begin(), values.end(),
                                            [&](int v) { return draft.values[static_cast<size_t>(v)].buffer == buffer; }));
    };
    const int reads = count(draft.steps[s].inputs);
    if (reads > 0) reader = static_cast<int>(s);
    touches += reads + count(draft.steps[s].outputs);
  }
  return touches == 2 ? reader : -1;
}

}  // namespace

void spare_copies(const Draft& draft, const std::function<Result<Choice>(const DraftStep&)>& choice_of,
                  std::vector<ChosenStep>& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* params = std::get_if<StageParams>(&draft.steps[i].work);
    if (steps[i].dropped || steps[i].block || !params || !std::holds_alternative<CopyParams>(*params)) continue;
    const int from = draft.steps[i].inputs[0], to = draft.steps[i].outputs[0], reader = only_reader(draft, to);
    if (reader < 0) continue;
    ChosenStep& conv = steps[static_cast<size_t>(reader)];
    DraftStep step = draft.steps[static_cast<size_t>(reader)];
    const auto* problem = std::get_if<Problem>(&step.work);
    if (conv.dropped || conv.block || !problem || problem->kind != ProblemKind::conv || problem->c > kFewChannels) continue;
    if (step.inputs[0] != to || draft.desc(from).shape != draft.desc(to).shape) continue;
    step.inputs[0] = from;
    auto found = choice_of(step);
    if (!found.ok() || found->algorithm != kReadsPlanes) continue;
    if (found->cost.seconds >= steps[i].choice.cost.seconds + conv.choice.cost.seconds) continue;
    conv.choice = std::move(*found);
    conv.block = std::move(step);
    steps[i].dropped = true;
  }
}

}  // namespace sparkle
