#include "plan/memory/copy_elimination.h"

#include "families/copy/copy.h"

namespace sparkle {
namespace {

// Only these kernels' predictions know what planes cost them.
constexpr std::string_view kReadsPlanes = "direct";
constexpr int64_t kFewChannels = 4;

// The one step that reads each buffer, which nothing else touches after it was written; -1 where there is none.
std::vector<int> only_readers(const Draft& draft) {
  std::vector<int> reader(draft.buffers.size(), -1), touches(draft.buffers.size(), 0);
  for (size_t s = 0; s < draft.steps.size(); ++s) {
    for (int v : draft.steps[s].outputs) ++touches[static_cast<size_t>(draft.values[static_cast<size_t>(v)].buffer)];
    for (int v : draft.steps[s].inputs) {
      const auto buffer = static_cast<size_t>(draft.values[static_cast<size_t>(v)].buffer);
      ++touches[buffer], reader[buffer] = static_cast<int>(s);
    }
  }
  for (size_t b = 0; b < reader.size(); ++b)
    if (touches[b] != 2 || draft.buffers[b].kind != PlaceKind::arena) reader[b] = -1;
  return reader;
}

}  // namespace

void eliminate_copies(const Draft& draft, const std::function<Result<Choice>(const DraftStep&)>& choice_of,
                      std::vector<ChosenStep>& steps) {
  const std::vector<int> readers = only_readers(draft);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* params = std::get_if<StageParams>(&draft.steps[i].work);
    if (steps[i].dropped || steps[i].block || !params || !holds<CopyParams>(*params)) continue;
    const int from = draft.steps[i].inputs[0], to = draft.steps[i].outputs[0];
    const int reader = readers[static_cast<size_t>(draft.values[static_cast<size_t>(to)].buffer)];
    if (reader < 0) continue;
    ChosenStep& conv = steps[static_cast<size_t>(reader)];
    DraftStep step = draft.steps[static_cast<size_t>(reader)];
    const auto* problem = std::get_if<Problem>(&step.work);
    if (conv.dropped || conv.block || !problem || problem->kind != ProblemKind::conv || problem->c > kFewChannels) continue;
    if (step.inputs[0] != to || draft.desc(from).shape != draft.desc(to).shape) continue;
    step.inputs[0] = from;
    auto found = choice_of(step);
    if (!found.ok() || found->algorithm != kReadsPlanes) continue;
    if (conv.choice.tuned && !found->tuned) continue;  // what was measured outranks predictions
    if (found->cost.seconds >= steps[i].choice.cost.seconds + conv.choice.cost.seconds) continue;
    conv.choice = std::move(*found);
    conv.block = std::move(step);
    steps[i].dropped = true;
  }
}

}  // namespace sparkle
