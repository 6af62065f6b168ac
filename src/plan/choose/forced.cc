#include "plan/choose/forced.h"

#include <algorithm>
#include <map>

#include "base/log.h"

namespace sparkle {
namespace {

// Whether a layer is as forced, or might have been; a variant is forced where the family has it.
enum class As : uint8_t { forced, otherwise, no_matter };

struct Forced {
  std::string what;  // "The algorithm 'fft'"
  std::map<Reason, std::string> layers;
  size_t supported = 0;

  void add(As as, Reason reason, const std::string& layer) {
    if (as == As::forced) ++supported;
    if (as != As::otherwise) return;
    std::string& list = layers[reason];
    list += (list.empty() ? "'" : ", '") + layer + "'";
  }
  std::vector<std::string> sentences() const {
    std::vector<std::string> all;
    for (const auto& [reason, list] : layers)
      all.push_back(what + " is not taken for " + list + ": " + std::string(code_of(reason)) + ", " +
                    std::string(sentence_of(reason)) + ".");
    return all;
  }
};

// Why the planner passed over what was forced: the first reason of a candidate of that algorithm or variant.
std::optional<Reason> reason_in(const std::vector<Candidate>& candidates, const std::string& algorithm,
                                const std::string& variant) {
  const auto matches = [&](const Candidate& c) {
    if (!algorithm.empty()) return c.algorithm == algorithm;
    const size_t at = c.schedule.find("variant=" + variant);
    return at != std::string::npos &&
           (at + 8 + variant.size() == c.schedule.size() || c.schedule[at + 8 + variant.size()] == ' ');
  };
  for (const Candidate& c : candidates)
    if (matches(c) && c.reason != Reason::none) return c.reason;
  return {};
}

As as_forced(const std::string& algorithm, const std::vector<Candidate>& candidates, const std::string& wanted,
             Reason& reason) {
  if (algorithm == wanted) return As::forced;
  const auto found = reason_in(candidates, wanted, "");
  reason = found.value_or(Reason::not_this_family);
  return As::otherwise;
}

As as_forced_variant(const Schedule& schedule, const std::vector<Candidate>& candidates, const std::string& wanted,
                     Reason& reason) {
  if (variant_of(schedule) == wanted) return As::forced;
  const auto found = reason_in(candidates, "", wanted);
  if (!found) return As::no_matter;
  reason = *found;
  return As::otherwise;
}

Error refused(const Forced& forced, const std::vector<std::string>& why) {
  std::string sentence = forced.what + " supports no layer here";
  if (why.empty())
    return {Reason::bad_usage, sentence + "; leave the option out, or take one that 'sparkle explain --candidates' shows."};
  for (const std::string& s : why) sentence += ". " + s.substr(0, s.size() - 1);
  return {Reason::bad_usage, sentence + "; leave the option out."};
}

}  // namespace

std::vector<std::string> not_as_forced(const Plan& plan, const PlanSettings& settings) {
  std::vector<std::string> sentences;
  const auto finish = [&](const Forced& forced) {
    const auto why = forced.sentences();
    if (forced.supported == 0) sentences.push_back(forced.what + " supports no layer here.");
    sentences.insert(sentences.end(), why.begin(), why.end());
  };
  Reason reason = Reason::none;
  if (!settings.algorithm.empty()) {
    Forced forced{"The algorithm '" + settings.algorithm + "'", {}, 0};
    for (const PlanStep& step : plan.steps)
      if (!step.problem.empty() && !step.candidates.empty()) {  // the first of a layer's steps
        const As as = as_forced(step.algorithm, step.candidates, settings.algorithm, reason);
        forced.add(as, reason, step.name);
      }
    finish(forced);
  }
  if (!settings.variant.empty()) {
    Forced forced{"The kernel variant '" + settings.variant + "'", {}, 0};
    for (const PlanStep& step : plan.steps) {
      const As as = as_forced_variant(step.schedule, step.candidates, settings.variant, reason);
      forced.add(as, reason, step.name);
    }
    finish(forced);
  }
  return sentences;
}

void log_not_as_forced(const Plan& plan, const PlanSettings& settings) {
  if (!logging()) return;
  for (const std::string& sentence : not_as_forced(plan, settings)) log(LogLevel::warning, sentence);
}

Status check_as_forced(const Choice& choice, const std::string& layer, const PlanSettings& settings) {
  Reason reason = Reason::none;
  if (!settings.algorithm.empty()) {
    Forced forced{"The algorithm '" + settings.algorithm + "'", {}, 0};
    const As as = as_forced(choice.algorithm, choice.candidates, settings.algorithm, reason);
    forced.add(as, reason, layer);
    if (as == As::otherwise) return refused(forced, forced.sentences());
  }
  return ok();
}

}  // namespace sparkle
