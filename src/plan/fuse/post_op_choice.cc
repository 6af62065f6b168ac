#include "plan/fuse/post_op_choice.h"

#include "families/values/post_ops.h"
#include "plan/choose/cost.h"
#include "plan/choose/judge_weights.h"
#include "plan/lower/lower.h"

namespace sparkle {
namespace {

// The row for explain where the step with its post-op is slower than both apart, or nothing serves it.
std::optional<Candidate> why_apart(const AnchorCall& call, const Device& device, const PlanOptions& options) {
  const PointwiseParams& post_op = call.problem.epilogue.post_op;
  AnchorCall bare = call;
  bare.problem.epilogue.post_op = {};
  const auto first = static_cast<std::ptrdiff_t>(call.inputs.size()) - call.problem.epilogue.post_op_operands();
  bare.inputs.erase(bare.inputs.begin() + first, bare.inputs.end());
  Stage program{post_op, {call.output}, {call.output}};
  program.inputs.insert(program.inputs.end(), call.inputs.begin() + first, call.inputs.end());
  const auto anchor = choose(bare, device, options), behind = choose(program, device, options);
  if (!anchor.ok() || !behind.ok() || anchor->without_kernel || behind->without_kernel) return std::nullopt;
  const auto both = choose(call, device, options);
  const bool supported = both.ok() && !both->without_kernel;
  if (supported && both->cost.seconds <= add(anchor->cost, behind->cost).seconds) return std::nullopt;
  Candidate row{"tail", expression(post_op), std::nullopt, Reason::costlier};
  if (supported) {
    row.cost = both->cost;
    return row;
  }
  row.reason = Reason::tail_not_served;
  if (both.ok())
    for (const Candidate& c : both->candidates)
      if (c.reason == Reason::failed_probe) row.reason = c.reason;
  return row;
}

}  // namespace

Result<Draft> draft_with_post_ops(const Graph& graph, const Device& device, const PlanOptions& options, PostOpsApart& apart) {
  PostOpRules rules{takes_post_ops(device), {}};
  for (;;) {
    SPARKLE_TRY(draft, lower(graph, fuse(graph, options.fuse, rules), device));
    judge_weights(draft, options);
    const size_t before = rules.apart.size();
    for (const DraftStep& step : draft.steps) {
      const auto* problem = std::get_if<Problem>(&step.work);
      if (!problem || !problem->epilogue.has_post_op() || draft.desc(step.outputs[0]).elements() == 0) continue;
      if (auto row = why_apart(draft.call_of(step, *problem), device, options)) {
        rules.apart.insert(step.anchor);
        apart.emplace(step.anchor, std::move(*row));
      }
    }
    if (rules.apart.size() == before) return draft;
  }
}

}  // namespace sparkle
