// Choice: every draft step gets its stages and schedules. Describe, enumerate, reject with a reason, rank by cost.
#pragma once

#include <limits>

#include "families/family.h"
#include "plan/draft.h"

namespace sparkle {

// A candidate for an anchor or a single stage: stages with the schedule of each.
struct Choice {
  std::string algorithm;
  StagePlan plan;
  std::vector<Schedule> schedules;
  std::vector<Footprint> footprints;
  std::vector<Cost> costs;
  Cost cost;                          // of all stages
  std::vector<Candidate> candidates;  // everything looked at, the chosen one first
  double error = 0;                   // bound of the rounding errors beyond those of a plain sum
  bool without_kernel = false;        // a stage has the roofs' bound alone: nothing here runs it yet
  Reason host_reason = Reason::none;  // why it is the host's: no_kernel or cheaper_on_host; none: it is the device's
  bool tuned = false;                 // a stored measurement chose, not the cost
  double spared_seconds = 0;          // what that error buys: the cheapest candidate without one takes so much longer

  bool on_host() const { return host_reason != Reason::none; }
};

// The variant of a step that no kernel exists for yet, on a kind of device without any: it is planned all the same, with the
// time that the device's roofs allow, so that `explain` can tell about machines to come. No backend compiles it.
inline constexpr std::string_view kNoKernel = "no_kernel";
bool has_kernel(const PlanStep& step);
bool has_all_kernels(const Plan& plan);

// Errors: bad_usage where the algorithm or variant to be forced exists nowhere; the sentence lists what does.
Status check_forced(const PlanOptions& options);

// Whether algorithms whose rounding errors exceed a plain sum's may be chosen.
enum class Approximation : uint8_t { allowed, exact };

// The cheapest candidate, of those whose packed weights take at most `most_packed` bytes. Errors: no_kernel with the sentence
// of the best rejection where nothing serves it.
Result<Choice> choose(const AnchorCall& call, const Device& device, const PlanOptions& options,
                      Approximation approximation = Approximation::allowed,
                      int64_t most_packed = std::numeric_limits<int64_t>::max());
Result<Choice> choose(const Stage& stage, const Device& device, const PlanOptions& options);

// What a tuning store knows the call by: the problem, the accuracy asked for, and the layout of each operand that does not lie
// as operands_of() has it.
std::string tuning_key(const AnchorCall& call, const PlanOptions& options);

// Whether constant weights may be kept in a type of 16 bits that rounds them.
bool keeps_rounded(const AnchorCall& call, const PlanOptions& options);

// Every candidate that a measurement may find best: each algorithm that may serve the call with each schedule of its first
// stage (the other stages take the same one where they have it). The planner's own choice first, then by predicted cost; plain
// loops only where there is nothing else. Errors: those of choose().
Result<std::vector<Choice>> candidates_of(const AnchorCall& call, const Device& device, const PlanOptions& options);

// How much of a more accurate algorithm's time another one may take.
inline constexpr double kWorth = 0.9;

}  // namespace sparkle
