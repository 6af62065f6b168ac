#include "fix/pad/predict.h"

#include <algorithm>
#include <set>

#include "check/estimate.h"

namespace sparkle::fix {

PredictedChain::PredictedChain(const PadPlan& plan, const PadTarget& target, const std::vector<size_t>& members)
    : plan_(plan), target_(target), members_(members) {
  std::set<int> runs;
  for (size_t i : members_) {
    before_ += before_of(i);
    for (const Runs& list : {plan_.products[i].in, plan_.products[i].out})
      for (const Run& run : plan_.channels.expand(list)) runs.insert(run.id);
  }
  for (const auto* list : {&plan_.entries, &plan_.exits})
    for (const PadPlan::Border& border : *list) {
      const Runs own = plan_.channels.expand(border.runs);
      if (std::any_of(own.begin(), own.end(), [&](const Run& run) { return runs.contains(run.id); }))
        borders_.push_back(&border);
    }
}

double PredictedChain::seconds() {
  double sum = border_seconds();
  for (size_t i : members_) sum += after_of(i);
  return sum;
}

double PredictedChain::border_seconds() const {
  const auto element = static_cast<double>(size_of(stored_type(target_.precision)));
  double sum = 0;
  for (const PadPlan::Border* border : borders_) {
    const int64_t from = plan_.channels.size(border->runs), to = plan_.channels.grown(border->runs);
    if (from == to) continue;
    // Read as it comes, written as it is wanted, or the other way about.
    sum += estimate_copy(element * border->others * static_cast<double>(from + to), target_.device);
  }
  return sum;
}

double PredictedChain::of(size_t product, const Problem& problem) {
  const bool matrices = problem.kind == ProblemKind::matmul;
  const std::tuple key{product, matrices ? problem.depth : problem.c, matrices ? problem.columns : problem.k};
  const auto [at, fresh] = known_.emplace(key, 0);
  if (!fresh) return at->second;
  auto found = estimate(problem, target_.precision, target_.device);
  if (!found) found = estimate(problem, Precision::fp32, target_.device);  // widened: no unit or kernel takes the type
  if (found) at->second = found->cost.seconds;
  return at->second;
}

}  // namespace sparkle::fix
