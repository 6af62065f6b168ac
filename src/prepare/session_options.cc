#include "prepare/session_options.h"

#include <cstdio>

namespace sparkle {

Status check_options(const CompiledModel& model, const SessionOptions& asked) {
  const CompileOptions& have = model.options();
  const auto refused = [&](const std::string& option, const std::string& with, const std::string& instead) {
    return Error{Reason::bad_usage, "'" + model.name() + "' was compiled with " + option + " " + with + ", not " + instead +
                                        "; leave the option out, or compile the model again with it."};
  };
  const auto word = [](const std::string& text) { return text.empty() ? std::string("chosen by cost") : "'" + text + "'"; };
  const auto number = [](double value) {
    char text[32];
    return std::string(text, static_cast<size_t>(std::snprintf(text, sizeof text, "%g", value)));
  };
  // All there are: one more does not compile before it is looked at here.
  const auto& [algorithm, variant, fusion, memory_budget, accuracy, fuse, exact_nonfinite] =
      static_cast<const PlanSettings&>(asked);
  (void)memory_budget;
  if (!algorithm.empty() && algorithm != have.algorithm) return refused("the algorithm", word(have.algorithm), word(algorithm));
  if (!variant.empty() && variant != have.variant) return refused("the variant", word(have.variant), word(variant));
  if (!fusion.empty() && fusion != have.fusion) return refused("the fusion", word(have.fusion), word(fusion));
  if (accuracy != PlanSettings{}.accuracy && accuracy != have.accuracy)
    return refused("an accuracy of", number(have.accuracy), number(accuracy));
  if (exact_nonfinite && !have.exact_nonfinite) return refused("algorithms for finite values", "(nonfinite fast)", "exact");
  if (!fuse && have.fuse) return refused("fused steps,", "which stay fused", "apart");
  if (asked.tuning && (!model.tuning() || asked.tuning->to_text() != model.tuning()->to_text()))
    return refused("its own choices,", model.tuning() ? "of another tuning store" : "by cost", "those of this tuning store");
  return ok();
}

}  // namespace sparkle
