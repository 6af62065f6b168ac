#include "plan/choose/choose.h"

#include <algorithm>

#include "families/common.h"
#include "families/gemm/stored_weights.h"
#include "families/registry.h"
#include "families/values/post_ops.h"
#include "families/type_set.h"
#include "plan/memory/budget.h"
#include "plan/choose/cost.h"
#include "plan/choose/tuning_store.h"

namespace sparkle {
namespace {

struct Scheduled {
  Schedule schedule;
  Footprint footprint;
  Cost cost;
};

// Variants of the gemm family that keep weights in another type are those of another algorithm.
bool is_of(DType weights, const Stage& stage, const Variant& variant) {
  return stage.family() != Family::gemm || stored_weights(variant.name) == weights;
}

// All schedules of one stage, cheapest first; rejections go to `candidates`.
std::vector<Scheduled> enumerate(std::string_view algorithm, DType weights, const Stage& stage, const Device& device,
                                 const PlanOptions& options, std::vector<Candidate>& candidates) {
  const FamilyInfo& family = info(stage.family());
  std::vector<Scheduled> found;
  for (const Variant& variant : family.variants) {
    if (!is_of(weights, stage, variant)) continue;
    Reason why_not = Reason::none;
    std::vector<Schedule> schedules;
    // A forced variant is forced where its family has it; other families choose freely.
    const bool forced = !options.variant.empty() && std::any_of(family.variants.begin(), family.variants.end(),
                                                                [&](const Variant& v) { return v.name == options.variant; });
    if (forced && variant.name != options.variant) {
      why_not = Reason::forced_other;
    } else if (!variant.runs_on(device)) {
      why_not = Reason::backend_lacks_variant;
    } else if (device.denies(family.name, variant.name)) {
      why_not = Reason::failed_probe;
    } else if (const Reason refused = post_op_refusal(stage, variant, device); refused != Reason::none) {
      why_not = refused;
    } else {
      schedules = family.schedules(stage, variant, device, why_not);
    }
    if (schedules.empty()) {
      candidates.push_back({std::string(algorithm), "variant=" + std::string(variant.name), std::nullopt, why_not});
      continue;
    }
    for (Schedule& schedule : schedules) {
      Footprint footprint = family.footprint(stage, schedule, device);
      const Cost cost = cost_of(footprint, schedule, device, device.pace(family.name, variant.name, unit_of(schedule)));
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

// The roofs' word on a stage without a kernel: its products by the fp32 unit, its operands through memory once.
Scheduled bound_of(const Stage& stage, const Device& device) {
  LoopSchedule schedule;
  schedule.variant = kNoKernel;
  if (const MathUnit* unit = fastest_fp32_unit(device)) schedule.unit = unit->name;
  const Footprint counted = info(stage.family()).footprint(stage, LoopSchedule{}, device);
  Footprint footprint = streaming_footprint(stage, device, counted.nominal_flops);
  footprint.executed_flops = counted.executed_flops;
  footprint.parallel_items = std::max(1, device.cores);
  const Cost cost = cost_of(footprint, schedule, device);
  return {schedule, footprint, cost};
}

// Plain loops run any stage of a family. Where a device runs none, what no schedule serves is a kernel still to be written.
bool runs_plain_loops(const Stage& stage, const Device& device) {
  const auto& variants = info(stage.family()).variants;
  return std::any_of(variants.begin(), variants.end(),
                     [&](const Variant& v) { return v.name == "plain" && v.runs_on(device); });
}

// Units that are described but have no kernels yet: said once per anchor, so that explain shows what lies idle.
void note_idle_units(const Device& device, std::vector<Candidate>& candidates) {
  for (const MathUnit& unit : device.units)
    if (!has_kernels(device, unit)) candidates.push_back({"gemm", "unit=" + unit.name, std::nullopt, Reason::no_kernel});
}

// A schedule's text without the counts that follow from the stage's sizes: stages of one call differ in them.
std::string without_counts(std::string text) {
  for (const char* field : {" grain=", " ranges="})
    if (const size_t at = text.find(field); at != std::string::npos) text.erase(at, text.find(' ', at + 1) - at);
  return text;
}

// The schedule that `wanted` is the text of, for this stage or another one; nullptr: there is none.
const Scheduled* named(const std::vector<Scheduled>& found, const std::string& wanted) {
  const std::string text = without_counts(wanted);
  const auto at =
      std::find_if(found.begin(), found.end(), [&](const Scheduled& s) { return without_counts(to_text(s.schedule)) == text; });
  return at == found.end() ? nullptr : &*at;
}

void add_stage(Choice& choice, const Scheduled& chosen) {
  choice.without_kernel |= variant_of(chosen.schedule) == kNoKernel;
  choice.schedules.push_back(chosen.schedule);
  choice.footprints.push_back(chosen.footprint);
  choice.costs.push_back(chosen.cost);
  choice.cost = choice.costs.size() == 1 ? chosen.cost : add(choice.cost, chosen.cost);
}

// Picks for each stage of one algorithm, the stored schedule where it is this algorithm's; false where a stage has none.
bool complete(Choice& choice, const TuningStore::Entry* stored, const Device& device, const PlanOptions& options) {
  const Algorithm* algorithm = algorithm_named(choice.algorithm);
  const DType weights = algorithm ? algorithm->weights : DType::f32;
  std::vector<size_t> ends;  // of each stage's candidates
  for (const StageUse& use : choice.plan.stages) {
    if (!choice.costs.empty()) ends.push_back(choice.candidates.size());
    const auto found = enumerate(choice.algorithm, weights, use.stage, device, options, choice.candidates);
    if (found.empty()) {
      if (runs_plain_loops(use.stage, device)) return false;
      const Scheduled bound = bound_of(use.stage, device);
      choice.candidates.push_back({choice.algorithm, to_text(bound.schedule), bound.cost, Reason::no_kernel});
      add_stage(choice, bound);
      continue;
    }
    const Scheduled* best = stored && stored->algorithm == choice.algorithm ? named(found, stored->schedule) : nullptr;
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
  // A candidate costs what the algorithm does with it: the other stages as they were picked.
  ends.push_back(choice.candidates.size());
  for (size_t stage = 0, i = 0; stage < choice.costs.size() && choice.costs.size() > 1; ++stage)
    for (; i < ends[stage]; ++i)
      if (auto& cost = choice.candidates[i].cost; cost) cost->seconds += choice.cost.seconds - choice.costs[stage].seconds;
  return true;
}

// A forced algorithm that cannot support this call leaves it to the others: a network has layers of many kinds.
const Algorithm* forced_for(const AnchorCall& call, const PlanOptions& options) {
  const Algorithm* forced = options.algorithm.empty() ? nullptr : algorithm_named(options.algorithm);
  if (!forced || (options.exact_nonfinite && forced->finite_only)) return nullptr;
  return forced->applies(call) == Reason::none ? forced : nullptr;
}

Reason why_not(const Algorithm& algorithm, const Algorithm* forced, const AnchorCall& call, const PlanOptions& options) {
  if (const Reason reason = algorithm.applies(call); reason != Reason::none) return reason;
  if (options.exact_nonfinite && algorithm.finite_only) return Reason::finite_only;
  if (forced) return forced == &algorithm ? Reason::none : Reason::forced_other;
  // Who asks for a variant by name asks for its algorithm.
  if (algorithm.weights != DType::f32 && algorithm.weights == stored_weights(options.variant)) return Reason::none;
  return algorithm.error_of(call) > options.accuracy ? Reason::too_inaccurate : Reason::none;
}

bool errs(std::string_view algorithm, const AnchorCall& call) {
  const Algorithm* named = algorithm_named(algorithm);
  return named && named->error_of(call) > 0;
}

void chosen_first(std::vector<Candidate>& candidates) {
  std::stable_partition(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.reason == Reason::none; });
}

}  // namespace

bool has_kernel(const PlanStep& step) { return variant_of(step.schedule) != kNoKernel; }

bool has_all_kernels(const Plan& plan) { return std::all_of(plan.steps.begin(), plan.steps.end(), has_kernel); }

Status check_forced(const PlanOptions& options) {
  if (!options.algorithm.empty() && !algorithm_named(options.algorithm)) {
    std::string names;
    for (const Algorithm& a : algorithms()) names += (names.empty() ? "" : ", ") + std::string(a.name);
    return Error{Reason::bad_usage, "There is no algorithm '" + options.algorithm + "'; there are " + names + "."};
  }
  if (options.exact_nonfinite && !options.algorithm.empty() && algorithm_named(options.algorithm)->finite_only)
    return Error{Reason::bad_usage, "The algorithm '" + options.algorithm +
                                        "' is right for finite values of moderate size alone; "
                                        "leave out nonfinite exact, or force another algorithm."};
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

Result<Choice> choose(const AnchorCall& call, const Device& device, const PlanOptions& options, Approximation approximation,
                      int64_t most_packed) {
  std::vector<Candidate> candidates;
  double plain_seconds = 0;  // of the cheapest candidate without errors of its own
  const Algorithm* forced = forced_for(call, options);
  std::optional<Choice> best;
  const TuningStore::Entry* stored = options.tuning ? options.tuning->find(tuning_key(call, options)) : nullptr;
  for (const Algorithm& algorithm : algorithms()) {
    Reason reason = why_not(algorithm, forced, call, options);
    if (reason == Reason::none && !forced && algorithm.error_of(call) > 0 && approximation == Approximation::exact)
      reason = Reason::less_accurate;
    if (reason != Reason::none) {
      candidates.push_back({std::string(algorithm.name), "-", std::nullopt, reason});
      continue;
    }
    Choice choice;
    choice.algorithm = algorithm.name;
    choice.plan = algorithm.stages(call);
    const bool supported = complete(choice, stored, device, options);
    if (supported && packed_bytes(choice, device) > most_packed) {
      for (Candidate& c : choice.candidates)
        if (c.reason == Reason::none) c.reason = Reason::over_memory_budget;
      candidates.insert(candidates.end(), choice.candidates.begin(), choice.candidates.end());
      continue;
    }
    choice.error = algorithm.error_of(call);
    const bool runs = supported && !choice.without_kernel;
    if (runs && choice.error == 0 && (plain_seconds == 0 || choice.cost.seconds < plain_seconds))
      plain_seconds = choice.cost.seconds;
    // A measurement outranks every prediction. Larger errors must be worth it.
    const double worth = best && !forced && choice.error > best->error ? kWorth : 1;
    // What has a kernel goes before what the roofs alone would allow.
    const bool better = supported && (!best                                           ? true
                                      : choice.without_kernel != best->without_kernel ? best->without_kernel
                                      : choice.tuned == best->tuned ? choice.cost.seconds < worth * best->cost.seconds
                                                                    : choice.tuned);
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
  if (!best) return Error{Reason::no_kernel, "no algorithm supports " + short_name(call.problem) + " on " + device.name};
  if (best->error > 0 && !forced && !best->tuned) best->spared_seconds = std::max(0.0, plain_seconds - best->cost.seconds);
  note_idle_units(device, candidates);
  for (Candidate& c : candidates)
    if (c.algorithm != best->algorithm && c.reason == Reason::costlier && c.cost && c.cost->seconds < best->cost.seconds &&
        errs(c.algorithm, call))
      c.reason = Reason::less_accurate;
  chosen_first(candidates);
  best->candidates = std::move(candidates);
  return std::move(*best);
}

std::string tuning_key(const AnchorCall& call, const PlanOptions& options) {
  record_detail::Printer asked;
  asked("accuracy", options.accuracy);
  if (options.exact_nonfinite) asked("exact_nonfinite", options.exact_nonfinite);
  std::string key = to_text(call.problem) + " " + asked.text;
  const ProblemOperands usual = operands_of(call.problem);
  const auto add = [&](const std::string& name, const TensorDesc* usually, const TensorDesc& desc) {
    // Strides of axes of one element mean nothing, and where a buffer begins is no matter of speed.
    bool same = usually && usually->shape == desc.shape && usually->dtype == desc.dtype;
    for (int i = 0; same && i < desc.shape.size(); ++i)
      same = desc.shape[i] == 1 || usually->layout.strides[i] == desc.layout.strides[i];
    if (same) return;
    key += " " + name + "=" + std::string(name_of(desc.dtype)) + ":" + desc.shape.to_string() + "@" +
           desc.layout.strides.to_string();
  };
  for (size_t i = 0; i < call.inputs.size(); ++i)
    add("operand" + std::to_string(i), i < usual.inputs.size() ? &usual.inputs[i] : nullptr, call.inputs[i]);
  add("output", &usual.output, call.output);
  // Types of 16 bits that its weights may be stored in.
  TypeSet kept;
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.weights != DType::f32 && !kept.has(algorithm.weights) &&
        why_not(algorithm, nullptr, call, options) == Reason::none) {
      kept = kept | TypeSet{algorithm.weights};
      key += " weights=" + std::string(name_of(algorithm.weights));
    }
  return key;
}

bool keeps_rounded(const AnchorCall& call, const PlanOptions& options) {
  const Algorithm* forced = forced_for(call, options);
  return std::any_of(algorithms().begin(), algorithms().end(), [&](const Algorithm& algorithm) {
    return algorithm.weights != DType::f32 && why_not(algorithm, forced, call, options) == Reason::none &&
           algorithm.error_of(call) > 0;
  });
}

Result<std::vector<Choice>> candidates_of(const AnchorCall& call, const Device& device, const PlanOptions& given) {
  PlanOptions options = given;
  options.tuning = nullptr;
  SPARKLE_TRY(planned, choose(call, device, options));
  std::vector<Choice> found{std::move(planned)};
  const Algorithm* forced = forced_for(call, options);
  for (const Algorithm& algorithm : algorithms()) {
    if (why_not(algorithm, forced, call, options) != Reason::none) continue;
    Choice bare;
    bare.algorithm = algorithm.name;
    bare.plan = algorithm.stages(call);
    bare.error = algorithm.error_of(call);
    std::vector<std::vector<Scheduled>> stages;
    std::vector<Candidate> ignored;
    for (const StageUse& use : bare.plan.stages)
      stages.push_back(enumerate(bare.algorithm, algorithm.weights, use.stage, device, options, ignored));
    if (std::any_of(stages.begin(), stages.end(), [](const auto& stage) { return stage.empty(); })) continue;
    for (const Scheduled& first : stages[0]) {
      const std::string text = to_text(first.schedule);
      const bool planned_one = bare.algorithm == found[0].algorithm && text == to_text(found[0].schedules[0]);
      if (!planned_one && variant_of(first.schedule) == "plain") continue;
      Choice candidate = bare;
      for (const auto& stage : stages) {
        const Scheduled* same = named(stage, text);
        add_stage(candidate, same ? *same : stage.front());
      }
      // Exactly what a store that names it would lead to.
      if (planned_one) {
        found[0] = std::move(candidate);
      } else {
        found.push_back(std::move(candidate));
      }
    }
  }
  std::stable_sort(found.begin() + 1, found.end(),
                   [](const Choice& a, const Choice& b) { return a.cost.seconds < b.cost.seconds; });
  return found;
}

Result<Choice> choose(const Stage& stage, const Device& device, const PlanOptions& options) {
  Choice choice;
  choice.algorithm = name_of(stage.family());
  StageUse use{stage, {}, {}};
  for (size_t i = 0; i < stage.inputs.size(); ++i) use.inputs.push_back(static_cast<int>(i));
  for (size_t i = 0; i < stage.outputs.size(); ++i) use.outputs.push_back(static_cast<int>(stage.inputs.size() + i));
  choice.plan.stages.push_back(std::move(use));
  if (!complete(choice, nullptr, device, options))
    return Error{Reason::no_kernel, "no variant of the " + choice.algorithm + " family supports this on " + device.name};
  chosen_first(choice.candidates);
  return choice;
}

}  // namespace sparkle
