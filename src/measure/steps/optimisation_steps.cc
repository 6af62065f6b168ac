#include "measure/steps/optimisation_steps.h"

#include "families/common.h"
#include "measure/prepared_layer.h"
#include "measure/steps/step_choices.h"

namespace sparkle {
namespace {

// Steps of a CPU: from plain loops to the planner's product.
Status add_cpu_steps(std::vector<OptimisationStep>& steps, const AnchorCall& call, const Device& device,
                     const PlanOptions& options) {
  PlanOptions plain = options;
  plain.algorithm = "gemm", plain.variant = "plain";
  SPARKLE_TRY(naive, choose(call, device, plain));
  steps.push_back({"naive", "plain loops in double precision, one core", true, naive, ""});
  steps.push_back({"threaded", "the same loops on all cores", false, naive, ""});
  SPARKLE_TRY(gemm, gemm_of(call, device, options));
  if (tiles_of(gemm) && variant_of(gemm.schedules[0]) != "plain") {
    steps.push_back({"cache-blocked", "packed filters, loops cut to the caches, one sum at a time", false,
                     changed(gemm, device, [](GemmSchedule& s) { one_by_one(s), scalar(s); }), ""});
    steps.push_back({"vectorised", "a vector of filters at a time, one sum", false, changed(gemm, device, one_by_one), ""});
    OptimisationStep tiled{"register-tiled", "im2col in memory, then a product by tiles of sums in registers", false, {}, ""};
    set_im2col(tiled, call, device, options, false);
    steps.push_back(std::move(tiled));
    steps.push_back({"implicit GEMM", "no im2col, taps in the padding left out, what comes next fetched", false, gemm, ""});
  }
  return ok();
}

// Steps of a GPU: three kernels as textbooks have them, then the gemm family's variants for it: their table has them in the
// order of the steps.
Status add_gpu_steps(std::vector<OptimisationStep>& steps, const AnchorCall& call, const Device& device,
                     const PlanOptions& options, bool planes) {
  OptimisationStep unrolled{"unrolled",
                            "the window unrolled in memory, a product of two matrices, its result permuted: three kernels",
                            false,
                            {},
                            ""};
  set_im2col(unrolled, call, device, options, true);
  steps.push_back(std::move(unrolled));
  for (const Variant& variant : info(Family::gemm).variants) {
    if (!variant.runs_on(device) || variant.unit == UnitKind::dot_product) continue;
    const bool matrix = variant.unit == UnitKind::matrix, tiles = variant.name == "implicit";
    if (tiles && !planes) steps.push_back(in_other_layout(call.problem, device, options, planes));
    const std::string_view note = variant.note.substr(reason_of(variant).size());
    OptimisationStep step{std::string(variant.name), std::string(note), false, {}, ""};
    auto choice = choice_of(variant.name, call, device, options);
    if (device.denies(name_of(Family::gemm), variant.name)) step.absent = "it failed its self-test on this driver";
    else if (choice.ok()) step.choice = std::move(*choice);
    else
      step.absent = matrix ? "no matrix unit of this device supports its shape, type or layout"
                           : "its shape, type or layout is not this variant's";
    steps.push_back(std::move(step));
    if (tiles && planes) steps.push_back(in_other_layout(call.problem, device, options, planes));
  }
  return ok();
}

}  // namespace

Result<std::vector<OptimisationStep>> optimisation_steps_of(const Problem& problem, const Device& device,
                                                            const PlanOptions& options, bool planes) {
  SPARKLE_CHECK(check_type(problem, device));
  const AnchorCall call = call_of(problem, device, planes);
  std::vector<OptimisationStep> steps;
  SPARKLE_CHECK(device.has_workgroups() ? add_gpu_steps(steps, call, device, options, planes)
                                        : add_cpu_steps(steps, call, device, options));
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == "gemm" || (algorithm.name.starts_with(kMatrix) && device.has_workgroups())) continue;
    OptimisationStep step{std::string(algorithm.name), std::string(algorithm.note), false, {}, ""};
    if (const Reason reason = algorithm.applies(call); reason != Reason::none) {
      step.absent = sentence_of(reason);
    } else {
      PlanOptions forced = options;
      forced.algorithm = algorithm.name;
      auto choice = choose(call, device, forced);
      // Plain loops stand for an algorithm only where there is nothing else.
      const auto plain_loops = [&] { return variant_of(choice->schedules[0]) == "plain" && best_vector_unit(device); };
      const bool supported = choice.ok() && choice->algorithm == algorithm.name && !choice->without_kernel && !plain_loops();
      if (supported) step.choice = std::move(*choice);
      else step.absent = choice.ok() ? "no kernel of this device supports it" : choice.error().message;
    }
    steps.push_back(std::move(step));
  }
  SPARKLE_TRY(planned, choose(call, device, options));
  steps.push_back({"as planned", "what the planner takes: " + planned.algorithm, false, planned, ""});
  return steps;
}

static Status try_steps(Backend& backend, const std::vector<OptimisationStep>& steps) {
  std::vector<const Choice*> choices;
  for (const OptimisationStep& step : steps)
    if (step.absent.empty()) choices.push_back(&step.choice);
  return try_variants(backend, choices);
}

Result<std::vector<OptimisationStep>> optimisation_steps_on(Backend& backend, const Problem& problem,
                                                            const PlanOptions& options, bool planes) {
  return plan_until_usable([&] { return optimisation_steps_of(problem, backend.device(), options, planes); },
                           [&](const auto& steps) { return try_steps(backend, steps); });
}

Result<std::vector<OptimisationStep>> ablation_on(Backend& backend, const Problem& problem, const PlanOptions& options) {
  return plan_until_usable([&] { return ablation_of(problem, backend.device(), options); },
                           [&](const auto& steps) { return try_steps(backend, steps); });
}

}  // namespace sparkle
