#include "plan/choose/judge_weights.h"

#include "plan/choose/choose.h"

namespace sparkle {

void judge_weights(Draft& draft, const PlanOptions& options) {
  for (const DraftStep& step : draft.steps) {
    const auto* problem = std::get_if<Problem>(&step.work);
    if (!problem || step.inputs.size() < 2) continue;
    DraftBuffer& buffer = draft.buffer_of(step.inputs[1]);
    const HostTensor* weights = draft.constant_of(step.inputs[1]);
    if (!weights || weights->dtype != DType::f32 || buffer.fit) continue;
    buffer.fit = WeightFit{Fit::rounded, Fit::rounded};
    const bool rounded = keeps_rounded(draft.call_of(step, *problem), options);
    buffer.fit = weight_fit(weights->data<float>(), weights->elements(), rounded);
  }
}

}  // namespace sparkle
