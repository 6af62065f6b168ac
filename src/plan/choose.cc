#include "plan/choose.h"

#include <algorithm>

#include "families/common.h"
#include "plan/budget.h"
#include "plan/cost.h"
#include "plan/tuning_store.h"

namespace sparkle {
namespace {

struct Scheduled {
  Schedule schedule;
  Footprint footprint;
  Cost cost;
};

// How much of a more accurate candidate's time another one may take.
constexpr double kWorth = 0.9;

// All schedules of one stage, cheapest first; rejections go to `candidates`.
std::vector<Scheduled> enumerate(std::string_view algorithm, const Stage& stage, const Device& device,
                                 const PlanOptions& options, std::vector<Candidate>& candidates) {
  const FamilyInfo& family = info(stage.family());
  std::vector<Scheduled> found;
  for (const Variant& variant : family.variants) {
    Reason why_not = Reason::none;
    std::vector<Schedule> schedules;
    // A forced variant is forced where its family has it; other families choose freely.
    const bool forced = !options.variant.empty() && std::any_of(family.variants.begin(), family.variants.end(),
                                                                [&](const Variant& v) { return v.name == options.variant; });
    if (forced && variant.name != options.variant) {
      why_not = Reason::forced_other;
    } else {
      schedules = family.schedules(stage, variant, device, why_not);
    }
    if (schedules.empty()) {
      candidates.push_back({std::string(algorithm), "variant=" + std::string(variant.name), std::nullopt, why_not});
      continue;
    }
    for (Schedule& schedule : schedules) {
      Footprint footprint = family.footprint(stage, schedule, device);
      const Cost cost = cost_of(footprint, schedule, device);
      found.push_back({std::move(schedule), std::move(footprint), cost});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Scheduled& a, const Scheduled& b) { return a.cost.seconds < b.cost.seconds; });
  return found;
}

const MathUnit* fastest_fp32_unit(const Device& device) {
  const MathUnit* best = nullptr;
  for (const MathUnit& unit : device.units)
    if (unit.kind == UnitKind::vector_fma && unit.input == DType::f32 &&
        (!best || unit.flops_per_second > best->flops_per_second))
      best = &unit;
  return best;
}

// True where the family has no variant at all for this kind of device: not a rejection, a backend still to be written.
bool kind_without_kernels(const FamilyInfo& family, const Device& device) {
  return std::none_of(family.variants.begin(), family.variants.end(),
                      [&](const Variant& v) { return v.device == device.kind; });
}

// The roofs' word on a stage without a kernel: its products by the fp32 unit, its operands through memory once.
Scheduled bound_of(const Stage& stage, const Device& device) {
  LoopSchedule schedule;
  schedule.variant = kNoKernel;
  if (const MathUnit* unit = fastest_fp32_unit(device)) schedule.unit = unit->name;
  const Footprint counted = info(stage.family()).footprint(stage, LoopSchedule{}, device);
  Footprint footprint = streaming_footprint(stage, device, counted.nominal_flops);
  footprint.executed_flops = counted.executed_flops;
  footprint.parallel_units = std::max(1, device.cores);
  const Cost cost = cost_of(footprint, schedule, device);
  return {schedule, footprint, cost};
}

// Units that are described but have no kernels yet: said once per anchor, so that explain shows what lies idle.
void note_idle_units(const Device& device, std::vector<Candidate>& candidates) {
  for (const MathUnit& unit : device.units)
    if (!has_kernels(device, unit)) candidates.push_back({"gemm", "unit=" + unit.name, std::nullopt, Reason::no_kernel});
}

// The stored measurement of this problem, if it names one of the schedules found.
const Scheduled* tuned(const std::vector<Scheduled>& found, const std::string& key, const PlanOptions& options) {
  if (!options.tuning) return nullptr;
  const std::string* stored = options.tuning->find(key);
  if (!stored) return nullptr;
  for (const Scheduled& s : found)
    if (to_text(s.schedule) == *stored) return &s;
  return nullptr;
}

void add_stage(Choice& choice, const Scheduled& chosen) {
  choice.schedules.push_back(chosen.schedule);
  choice.footprints.push_back(chosen.footprint);
  choice.costs.push_back(chosen.cost);
  choice.cost = choice.costs.size() == 1 ? chosen.cost : add(choice.cost, chosen.cost);
}

// Picks for each stage of one algorithm; false where a stage has no schedule.
bool complete(Choice& choice, const std::string& key, const Device& device, const PlanOptions& options) {
  for (const StageUse& use : choice.plan.stages) {
    const auto found = enumerate(choice.algorithm, use.stage, device, options, choice.candidates);
    if (found.empty()) {
      if (!kind_without_kernels(info(use.stage.family()), device)) return false;
      const Scheduled bound = bound_of(use.stage, device);
      choice.candidates.push_back({choice.algorithm, to_text(bound.schedule), bound.cost, Reason::no_kernel});
      add_stage(choice, bound);
      continue;
    }
    const Scheduled* best = tuned(found, key, options);
    const bool overridden = best && best != &found.front();
    choice.tuned |= best != nullptr;
    if (!best) best = &found.front();
    for (const Scheduled& s : found)
      choice.candidates.push_back({choice.algorithm, to_text(s.schedule), s.cost,
                                   &s == best   ? Reason::none
                                   : overridden ? Reason::tuned_other
                                                : Reason::costlier});
    add_stage(choice, *best);
  }
  return true;
}

void chosen_first(std::vector<Candidate>& candidates) {
  std::stable_partition(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.reason == Reason::none; });
}

}  // namespace

bool has_kernel(const PlanStep& step) { return variant_of(step.schedule) != kNoKernel; }

Status check_forced(const PlanOptions& options) {
  if (!options.algorithm.empty() && !algorithm_named(options.algorithm)) {
    std::string names;
    for (const Algorithm& a : algorithms()) names += (names.empty() ? "" : ", ") + std::string(a.name);
    return Error{Reason::bad_usage, "There is no algorithm '" + options.algorithm + "'; there are " + names + "."};
  }
  if (!options.fusion.empty() && options.fusion != "inverted" && options.fusion != "none")
    return Error{Reason::bad_usage, "There is no fusion '" + options.fusion + "'; there are inverted and none."};
  if (options.variant.empty()) return ok();
  std::vector<std::string_view> names;
  for (int f = 0; f < kFamilies; ++f)
    for (const Variant& v : info(static_cast<Family>(f)).variants) {
      if (v.name == options.variant) return ok();
      if (std::find(names.begin(), names.end(), v.name) == names.end()) names.push_back(v.name);
    }
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return Error{Reason::bad_usage, "There is no kernel variant '" + options.variant + "'; there are " + list + "."};
}

Result<Choice> choose(const AnchorCall& call, const Device& device, const PlanOptions& options, Errors errors,
                      int64_t most_packed) {
  std::vector<Candidate> candidates;
  double plain_seconds = 0;  // of the cheapest way without errors of its own
  const Algorithm* forced = options.algorithm.empty() ? nullptr : algorithm_named(options.algorithm);
  // A forced algorithm that cannot serve this call leaves it to the others: a network has layers of many kinds.
  if (forced && forced->applies(call) != Reason::none) forced = nullptr;
  std::optional<Choice> best;
  const std::string key = to_text(call.problem);
  for (const Algorithm& algorithm : algorithms()) {
    Reason reason = algorithm.applies(call);
    if (reason == Reason::none && forced && forced != &algorithm) reason = Reason::forced_other;
    if (reason == Reason::none && !forced && algorithm.error && algorithm.error(call) > options.accuracy)
      reason = Reason::too_inaccurate;
    if (reason == Reason::none && !forced && algorithm.error && errors == Errors::avoided) reason = Reason::less_accurate;
    if (reason != Reason::none) {
      candidates.push_back({std::string(algorithm.name), "-", std::nullopt, reason});
      continue;
    }
    Choice choice;
    choice.algorithm = algorithm.name;
    choice.plan = algorithm.stages(call);
    const bool served = complete(choice, key, device, options);
    if (served && packed_bytes(choice, device) > most_packed) {
      for (Candidate& c : choice.candidates)
        if (c.reason == Reason::none) c.reason = Reason::over_memory_budget;
      candidates.insert(candidates.end(), choice.candidates.begin(), choice.candidates.end());
      continue;
    }
    choice.error = algorithm.error ? algorithm.error(call) : 0;
    if (served && choice.error == 0 && (plain_seconds == 0 || choice.cost.seconds < plain_seconds))
      plain_seconds = choice.cost.seconds;
    // A measurement outranks every prediction. Larger errors must be worth it.
    const double worth = best && !forced && choice.error > best->error ? kWorth : 1;
    const bool better =
        served && (!best || (choice.tuned == best->tuned ? choice.cost.seconds < worth * best->cost.seconds : choice.tuned));
    const Reason lost = choice.tuned || (best && best->tuned) ? Reason::tuned_other : Reason::costlier;
    for (Candidate& c : choice.candidates) {
      if (!better && c.reason == Reason::none) c.reason = lost;
      candidates.push_back(c);
    }
    if (!better) continue;
    for (Candidate& c : candidates)
      if (c.reason == Reason::none && c.algorithm != choice.algorithm) c.reason = lost;
    best = std::move(choice);
  }
  if (!best) return Error{Reason::no_kernel, "no algorithm serves " + short_name(call.problem) + " on " + device.name};
  if (best->error > 0 && !forced && !best->tuned) best->spared_seconds = std::max(0.0, plain_seconds - best->cost.seconds);
  note_idle_units(device, candidates);
  for (Candidate& c : candidates)
    if (c.algorithm != best->algorithm && c.reason == Reason::costlier && c.cost && c.cost->seconds < best->cost.seconds)
      c.reason = Reason::less_accurate;
  chosen_first(candidates);
  best->candidates = std::move(candidates);
  return std::move(*best);
}

Result<Choice> choose(const Stage& stage, const Device& device, const PlanOptions& options) {
  Choice choice;
  choice.algorithm = name_of(stage.family());
  StageUse use{stage, {}, {}};
  for (size_t i = 0; i < stage.inputs.size(); ++i) use.inputs.push_back(static_cast<int>(i));
  for (size_t i = 0; i < stage.outputs.size(); ++i) use.outputs.push_back(static_cast<int>(stage.inputs.size() + i));
  choice.plan.stages.push_back(std::move(use));
  if (!complete(choice, to_text(stage.params), device, options))
    return Error{Reason::no_kernel, "no variant of the " + choice.algorithm + " family serves this on " + device.name};
  chosen_first(choice.candidates);
  return choice;
}

}  // namespace sparkle
