#include "plan/fuse/anchors.h"

#include <map>

#include "plan/choose/choose.h"
#include "plan/fuse/post_op_choice.h"

namespace sparkle {

Result<std::vector<Anchor>> anchors_of(const Graph& graph, const Device& device, const PlanOptions& options) {
  PostOpsApart apart;
  SPARKLE_TRY(draft, draft_with_post_ops(graph, device, options, apart));
  std::vector<Anchor> anchors;
  std::map<std::string, size_t> known;
  for (const DraftStep& step : draft.steps) {
    const auto* problem = std::get_if<Problem>(&step.work);
    if (!problem || draft.desc(step.outputs[0]).elements() == 0) continue;
    AnchorCall call = draft.call_of(step, *problem);
    const auto [at, added] = known.try_emplace(tuning_key(call, options), anchors.size());
    if (added) {
      anchors.push_back({step.name, std::move(call), 1, draft.constant_of(step.inputs[1]) != nullptr});
    } else {
      ++anchors[at->second].count;
    }
  }
  return anchors;
}

}  // namespace sparkle
