#include "plan/explain.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/printable.h"
#include "families/copy/copy.h"
#include "families/gemm/gemm.h"
#include "families/inverted/inverted.h"
#include "plan/choose/choose.h"
#include "plan/memory/budget.h"

namespace sparkle {
namespace {

// "24x56x56 -> 144 -> 3x3 s2 -> 32 +add".
std::string block_text(const Stage& stage, const InvertedParams& p) {
  const auto number = [](int64_t n) { return std::to_string(n); };
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  std::string text = number(x.c) + "x" + number(x.h) + "x" + number(x.w);
  if (p.expand) text += " -> " + number(stage.inputs[static_cast<size_t>(inverted_operands(p).deep_weights)].shape[0]);
  text += " -> " + number(p.window.filter[1]) + "x" + number(p.window.filter[2]);
  if (p.window.stride[2] > 1) text += " s" + number(p.window.stride[2]);
  text += " -> " + number(y.c);
  return inverted_operands(p).residual >= 0 ? text + " +add" : text;
}

}  // namespace

std::string what_of(const PlanStep& step) {
  if (!step.problem.empty())
    if (const auto problem = from_text<Problem>(step.problem); problem.ok()) {
      std::string text = short_name(*problem);
      const Epilogue& e = problem->epilogue;
      if (e.bias) text += " +bias";
      if (e.residuals_before) text += " +add";
      if (e.activation != Activation::none) text += " +" + std::string(name_of(e.activation));
      if (e.residuals_after) text += " +add";
      if (e.has_post_op()) text += " +" + expression(e.post_op);
      return text;
    }
  if (const auto* block = get_if<InvertedParams>(&step.stage.params)) return block_text(step.stage, *block);
  if (const auto* program = get_if<PointwiseParams>(&step.stage.params)) return expression(*program);
  if (const auto* copy = get_if<CopyParams>(&step.stage.params);
      copy && !step.stage.inputs.empty() && !step.stage.outputs.empty())
    return copy->why + " " + name_of(step.stage.inputs[0].shape, step.stage.inputs[0].layout) + " -> " +
           name_of(step.stage.outputs[0].shape, step.stage.outputs[0].layout);
  return step.stage.outputs.empty() ? "" : step.stage.outputs[0].shape.to_string();
}

namespace {

bool is_layout_change(const PlanStep& step) { return step.stage.family() == Family::copy && step.runs_on != RunsOn::link; }

// Why the device does not do it; empty where it does.
std::string reason_of(const PlanStep& step) {
  const Reason reason = has_kernel(step) ? step.host_reason : Reason::no_kernel;
  return reason == Reason::none ? std::string() : std::string(code_of(reason));
}

double nominal_rate(const PlanStep& step) {
  return step.cost.seconds > 0 ? step.footprint.nominal_flops / step.cost.seconds : 0;
}

std::string tiles_of(const PlanStep& step) {
  if (!has_kernel(step)) return std::string(code_of(Reason::no_kernel));
  const std::string side = step.runs_on == RunsOn::host ? "host: " : "";
  const auto* g = get_if<GemmSchedule>(&step.schedule);
  if (!g) return side + variant_of(step.schedule);
  std::string text = side + g->variant + (g->order == GemmOrder::rows ? " rows" : " columns");
  if (g->kc > 0) text += " kc" + std::to_string(g->kc);
  return text;
}

}  // namespace

std::string host_note(const Plan& plan) {
  size_t lacking = 0, cheaper = 0, transfers = 0;
  double host = 0, link = 0;
  for (const PlanStep& step : plan.steps) {
    if (step.runs_on == RunsOn::host) ++(step.host_reason == Reason::cheaper_on_host ? cheaper : lacking);
    if (step.runs_on == RunsOn::host) host += step.cost.seconds;
    if (step.runs_on == RunsOn::link) ++transfers, link += step.cost.seconds;
  }
  std::string text = format("%zu steps without a kernel here", lacking);
  if (cheaper > 0) text += format(" and %zu between them that are cheaper there", cheaper);
  return text + format(" run on the host, %s: %.3f ms; %zu transfers for them: %.3f ms", plan.host.c_str(), host * 1e3,
                       transfers, link * 1e3);
}

std::string budget_note(const Plan& plan) {
  const double total = plan.predicted_seconds(), lost = plan.budget_seconds;
  return format("for the memory budget %d of %zu steps take packed weights of fewer bytes: predicted %.3f ms (%.1f %%) slower",
                plan.budget_steps, plan.steps.size(), lost * 1e3, total > lost ? 100 * lost / (total - lost) : 0.0);
}

bool is_step_named(const Plan& plan, const PlanStep& step, const std::string& name) {
  const bool whole =
      !name.empty() && std::any_of(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& s) { return s.name == name; });
  return whole ? step.name == name : step.name.find(name) != std::string::npos;
}

namespace {

// Candidates that no choice of this machine's could take: kernels of other devices and units.
bool is_for_others(const Candidate& c) {
  return !c.cost && (c.reason == Reason::backend_lacks_variant || c.reason == Reason::unit_missing);
}

std::string candidates_text(const std::vector<Candidate>& candidates) {
  std::string text;
  std::map<Reason, int> others;
  for (const Candidate& c : candidates) {
    if (is_for_others(c)) {
      ++others[c.reason];
    } else if (c.cost) {
      text += format("       %-10s %10.4f ms (%s)  ", c.algorithm.c_str(), c.cost->seconds * 1e3, c.cost->bound.c_str());
      text += c.schedule + "  " + (c.reason == Reason::none ? "chosen" : std::string(code_of(c.reason))) + "\n";
    } else {
      text += format("       %-10s %-24s ", c.algorithm.c_str(), c.schedule.c_str());
      text += std::string(code_of(c.reason)) + ": " + std::string(sentence_of(c.reason)) + "\n";
    }
  }
  if (others.empty()) return text;
  text += "       and of other devices and units:";
  for (const auto& [reason, count] : others) text += " " + std::to_string(count) + " " + std::string(code_of(reason));
  return text + "\n";
}

}  // namespace

std::string explain(const Plan& plan, const Device& device, const ExplainOptions& options) {
  std::string text = "plan of '" + printable(plan.model) + "' on " + device.name + "\n";
  const char* heading = plan.calibrated ? "predicted ms" : "bound ms";
  text += format("%-4s %-30s %-44s %-10s %-22s %12s %-8s %8s\n", "step", "name", "what", "algorithm", "kernel", heading,
                 "binds", "GFLOP/s");
  double layout_seconds = 0;
  size_t without_kernel = 0;
  std::map<std::string, int> bounds;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (is_layout_change(step)) layout_seconds += step.cost.seconds;
    ++bounds[step.cost.bound];
    without_kernel += has_kernel(step) ? 0 : 1;
    if (!is_step_named(plan, step, options.step)) continue;
    const std::string unit = unit_of(step.schedule).empty() ? "" : " " + unit_of(step.schedule);
    text += format("%-4zu %-30.30s %-44.44s %-10.10s %-22.22s %12.4f %-8s %8.1f\n", i, printable(step.name).c_str(),
                   what_of(step).c_str(), step.algorithm.c_str(), (tiles_of(step) + unit).c_str(), step.cost.seconds * 1e3,
                   step.cost.bound.c_str(), nominal_rate(step) * 1e-9);
    if (!options.candidates) continue;
    text += candidates_text(step.candidates);
  }
  const double total = plan.predicted_seconds();
  text +=
      format("%zu steps, %s %.3f ms", plan.steps.size(), plan.calibrated ? "predicted" : "bound, not calibrated:", total * 1e3);
  text += format("; layout changes and copies %.1f %%", total > 0 ? 100 * layout_seconds / total : 0.0);
  text += format("; arena %.1f MiB, constants %.1f MiB\n", static_cast<double>(plan.arena_bytes) / 1048576,
                 static_cast<double>(plan.constant_bytes()) / 1048576);
  if (plan.budget_steps > 0) text += budget_note(plan) + "\n";
  if (!plan.host.empty()) text += host_note(plan) + "\n";
  text += "bound by:";
  for (const auto& [name, count] : bounds) text += " " + name + " " + std::to_string(count);
  if (without_kernel > 0)
    text += format("\n%zu of %zu steps: no_kernel, none here computes them on %s; their times are what its roofs allow in fp32",
                   without_kernel, plan.steps.size(), device.name.c_str());
  return text + "\n";
}

std::string explain_json(const Plan& plan, const Device& device) {
  using nlohmann::json;
  json steps = json::array();
  for (const PlanStep& step : plan.steps) {
    json candidates = json::array();
    for (const Candidate& c : step.candidates) {
      json row{{"algorithm", c.algorithm},
               {"schedule", c.schedule},
               {"reason", c.reason == Reason::none ? "chosen" : std::string(code_of(c.reason))}};
      if (c.cost) row["predicted_ms"] = c.cost->seconds * 1e3, row["bound"] = c.cost->bound;
      candidates.push_back(std::move(row));
    }
    json bytes = json::object();
    for (size_t l = 0; step.runs_on == RunsOn::device && l < device.memory.size() && l < step.footprint.bytes.size(); ++l)
      bytes[device.memory[l].name] = step.footprint.bytes[l];
    steps.push_back({{"name", step.name},
                     {"nodes", step.nodes},
                     {"what", what_of(step)},
                     {"algorithm", step.algorithm},
                     {"runs_on", name_of(step.runs_on)},
                     {"family", name_of(step.stage.family())},
                     {"problem", step.problem},
                     {"schedule", to_text(step.schedule)},
                     {"reason", reason_of(step)},
                     {"predicted_ms", step.cost.seconds * 1e3},
                     {"bound", step.cost.bound},
                     {"nominal_flops", step.footprint.nominal_flops},
                     {"executed_flops", step.footprint.executed_flops},
                     {"bytes_moved", bytes},
                     {"workspace_bytes", step.workspace_bytes},
                     {"candidates", candidates}});
  }
  return json{{"model", plan.model},
              {"device", device.name},
              {"host", plan.host},
              {"calibrated", plan.calibrated},
              {"arena_bytes", plan.arena_bytes},
              {"constant_bytes", plan.constant_bytes()},
              {"memory_bytes", planned_bytes(plan, device)},
              {"predicted_ms", plan.predicted_seconds() * 1e3},
              {"budget_steps", plan.budget_steps},
              {"budget_lost_ms", plan.budget_seconds * 1e3},
              {"steps", steps}}
      .dump(2, ' ', false, json::error_handler_t::replace);  // names of models need not be UTF-8
}

}  // namespace sparkle
