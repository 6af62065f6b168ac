// Tuning of layers on a backend: each different call by the rule of measure/tuner.h, its choice into a store problem by
// problem.
#pragma once

#include <chrono>

#include "plan/fuse/anchors.h"
#include "plan/choose/tuning_store.h"
#include "measure/prepared_layer.h"
#include "measure/roofs/roof_judge.h"
#include "measure/tuner.h"

namespace sparkle {

struct TuneOptions {
  TuneRule rule;
  bool again = false;  // also what the store has already
  PlanOptions plan;
  uint64_t seed = 0;  // as in LayerBenchOptions
  // Nothing is measured any more from then on; the rule's own limit leaves out what compiling takes, this what trying takes.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

enum class TuneState : uint8_t { tuned, known, single, type_not_served, no_time };
std::string_view name_of(TuneState state);

struct TuneResult {
  Anchor anchor;
  TuneState state = TuneState::tuned;
  TuneVerdict verdict;                           // where tuned
  RoofVerdict roofs;                             // of the chosen candidate, against what was probed beside
  std::vector<Choice> candidates;                // the model's choice first
  std::vector<std::string> wrong;                // a sentence for each candidate that was out because its output was wrong
  Checked checked;                               // the outputs of the others
  std::chrono::steady_clock::duration trying{};  // took planning, and kernels that this driver had not run before
  const Choice& before() const { return candidates.front(); }
  const Choice& after() const { return candidates[verdict.chosen]; }
  double before_seconds() const { return verdict.seconds.front(); }
  double after_seconds() const { return verdict.seconds[verdict.chosen]; }
};

// A layer of a list as an anchor.
Anchor anchor_of(const std::string& name, const Problem& problem, const Device& device);

// One call; `store` gets its choice where one was made. Each candidate's whole output is checked before its first sample, after
// its first samples, and the chosen one's after all of them. Errors: internal where no candidate's output is right. A call
// whose time is used up before the rule can say anything is no_time.
Result<TuneResult> tune_anchor(Backend& backend, const Anchor& anchor, const TuneOptions& options, TuningStore& store);

}  // namespace sparkle
