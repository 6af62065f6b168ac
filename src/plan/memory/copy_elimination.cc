#include "plan/memory/copy_elimination.h"

#include "families/copy/copy.h"
#include "families/pool/pool.h"

namespace sparkle {
namespace {

// Only these kernels' predictions know what planes cost them.
constexpr std::string_view kReadsPlanes = "direct";
constexpr std::string_view kPoolsPlanes = "planes";
constexpr std::string_view kConvolvesPlanes = "few";  // planes in and out
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

// Transpositions on Zen 4 took 1.2 to 2.1 times what their bytes alone would.
constexpr double kTransposition = 1.7;

const StageParams* copy_of(const Draft& draft, const std::vector<ChosenStep>& steps, size_t step) {
  const auto* params = std::get_if<StageParams>(&draft.steps[step].work);
  return params && holds<CopyParams>(*params) && !steps[step].dropped && !steps[step].block ? params : nullptr;
}

// A pool between tensors that lie plane by plane works on these where that costs less than with the copies around it, which
// bring the channels side by side and apart again.
void pool_planes(const Draft& draft, const std::vector<int>& readers,
                 const std::function<Result<Choice>(const DraftStep&)>& choice_of, std::vector<ChosenStep>& steps) {
  const auto reader_of = [&](int value) {
    return readers[static_cast<size_t>(draft.values[static_cast<size_t>(value)].buffer)];
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!copy_of(draft, steps, i)) continue;
    const int from = draft.steps[i].inputs[0], to = draft.steps[i].outputs[0], reader = reader_of(to);
    if (reader < 0) continue;
    const auto at = static_cast<size_t>(reader);
    DraftStep step = draft.steps[at];
    const auto* params = std::get_if<StageParams>(&step.work);
    if (!params || !holds<PoolParams>(*params) || steps[at].dropped || steps[at].block || step.outputs.size() > 1) continue;
    if (step.inputs[0] != to || draft.desc(from).shape != draft.desc(to).shape || !columns_innermost(draft.desc(from)))
      continue;
    double seconds = kTransposition * steps[i].choice.cost.seconds + steps[at].choice.cost.seconds;
    const int y = step.outputs[0], after = reader_of(y);
    const bool copied = after >= 0 && copy_of(draft, steps, static_cast<size_t>(after));
    if (copied) {
      const DraftStep& copy = draft.steps[static_cast<size_t>(after)];
      if (copy.inputs[0] != y || draft.desc(copy.outputs[0]).shape != draft.desc(y).shape) continue;
      step.outputs[0] = copy.outputs[0];
      seconds += kTransposition * steps[static_cast<size_t>(after)].choice.cost.seconds;
    }
    if (!columns_innermost(draft.desc(step.outputs[0]))) continue;
    step.inputs[0] = from;
    auto found = choice_of(step);
    if (!found.ok() || variant_of(found->schedules[0]) != kPoolsPlanes) continue;
    if ((steps[at].choice.tuned && !found->tuned) || found->cost.seconds >= seconds) continue;
    steps[at].choice = std::move(*found);
    steps[at].block = std::move(step);
    steps[i].dropped = true;
    if (copied) steps[static_cast<size_t>(after)].dropped = true;
  }
}

// A convolution between tensors that lie plane by plane works on these where that costs less than with the copies around it.
void convolve_planes(const Draft& draft, const std::vector<int>& readers,
                     const std::function<Result<Choice>(const DraftStep&)>& choice_of, std::vector<ChosenStep>& steps) {
  const auto buffer_of = [&](int value) { return static_cast<size_t>(draft.values[static_cast<size_t>(value)].buffer); };
  std::vector<int> copied(draft.buffers.size(), -1);  // the copy that wrote each buffer
  for (size_t i = 0; i < steps.size(); ++i)
    if (copy_of(draft, steps, i)) copied[buffer_of(draft.steps[i].outputs[0])] = static_cast<int>(i);
  for (size_t i = 0; i < steps.size(); ++i) {
    DraftStep step = draft.steps[i];
    const auto* problem = std::get_if<Problem>(&step.work);
    if (steps[i].dropped || steps[i].block || !problem || problem->kind != ProblemKind::conv) continue;
    const int x = step.inputs[0], y = step.outputs[0],
              before = readers[buffer_of(x)] == static_cast<int>(i) ? copied[buffer_of(x)] : -1, after = readers[buffer_of(y)];
    double seconds = steps[i].choice.cost.seconds;
    if (before >= 0) {
      step.inputs[0] = draft.steps[static_cast<size_t>(before)].inputs[0];
      seconds += steps[static_cast<size_t>(before)].choice.cost.seconds;
    }
    if (after < 0 || !copy_of(draft, steps, static_cast<size_t>(after))) continue;
    step.outputs[0] = draft.steps[static_cast<size_t>(after)].outputs[0];
    seconds += steps[static_cast<size_t>(after)].choice.cost.seconds;
    const TensorDesc &from = draft.desc(step.inputs[0]), &to = draft.desc(step.outputs[0]);
    if (from.shape != draft.desc(x).shape || to.shape != draft.desc(y).shape) continue;
    if (!columns_innermost(from) || !columns_innermost(to)) continue;
    auto found = choice_of(step);
    if (!found.ok() || variant_of(found->schedules[0]) != kConvolvesPlanes) continue;
    if ((steps[i].choice.tuned && !found->tuned) || found->cost.seconds >= seconds) continue;
    steps[i].choice = std::move(*found);
    steps[i].block = std::move(step);
    if (before >= 0) steps[static_cast<size_t>(before)].dropped = true;
    steps[static_cast<size_t>(after)].dropped = true;
  }
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
  pool_planes(draft, readers, choice_of, steps);
  convolve_planes(draft, readers, choice_of, steps);
}

}  // namespace sparkle
