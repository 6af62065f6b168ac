#include "check/rows.h"

#include <algorithm>

#include "families/attention/attention.h"
#include "families/inverted/inverted.h"
#include "plan/choose/choose.h"

namespace sparkle {
namespace {

std::optional<Problem> problem_of(const PlanStep& step) {
  if (step.problem.empty()) return std::nullopt;
  auto problem = from_text<Problem>(step.problem);
  return problem.ok() ? std::optional(std::move(*problem)) : std::nullopt;
}

bool same_layer(const PlanStep& a, const PlanStep& b) {
  return !a.problem.empty() && a.problem == b.problem && a.nodes == b.nodes && a.algorithm == b.algorithm;
}

std::string types_of(const PlanStep& step, const std::optional<Problem>& problem) {
  if (problem) return problem->dtype;
  std::string text;
  for (const auto* list : {&step.stage.inputs, &step.stage.outputs})
    for (const TensorDesc& desc : *list)
      if (const std::string type(name_of(desc.dtype)); text.find(type) == std::string::npos)
        text += (text.empty() ? "" : " ") + type;
  return text;
}

std::string what_of(const PlanStep& step, const std::optional<Problem>& problem) {
  if (problem) return short_name(*problem);
  return step.stage.outputs.empty() ? "" : step.stage.outputs[0].shape.to_string();
}

Precision precision_of_type(DType type) {
  return type == DType::f16 ? Precision::fp16 : type == DType::bf16 ? Precision::bf16 : Precision::fp32;
}

CheckRow row_of(const PlanStep& step) {
  const auto problem = problem_of(step);
  CheckRow row;
  row.name = step.name, row.nodes = step.nodes;
  if (const size_t part = row.name.rfind("/0"); problem && part != std::string::npos && part + 2 == row.name.size())
    row.name.resize(part);
  row.what = what_of(step, problem), row.types = types_of(step, problem);
  row.kind = problem ? name_of(problem->kind) : name_of(step.stage.family());
  row.algorithm = step.algorithm;
  row.kernel = variant_of(step.schedule), row.unit = unit_of(step.schedule);
  row.flops = problem ? problem->nominal_flops() : step.footprint.nominal_flops;
  for (const auto* list : {&step.stage.inputs, &step.stage.outputs})
    for (const TensorDesc& desc : *list) row.bytes += static_cast<double>(desc.bytes());
  row.seconds = step.cost.seconds, row.bound = step.cost.bound;
  return row;
}

}  // namespace

std::vector<CheckRow> rows_of(const Plan& plan, const Device& device) {
  std::vector<CheckRow> rows;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const bool goes_on = i > 0 && same_layer(plan.steps[i - 1], step);
    if (goes_on) {
      CheckRow& row = rows.back();
      row.steps.push_back(static_cast<int>(i));
      row.seconds += step.cost.seconds;
      // The stage with the products is the one that the layer is known by.
      const PlanStep& first = plan.steps[static_cast<size_t>(row.steps.front())];
      if (step.footprint.executed_flops > first.footprint.executed_flops && step.cost.seconds > first.cost.seconds)
        row.unit = unit_of(step.schedule), row.kernel = variant_of(step.schedule), row.bound = step.cost.bound;
      continue;
    }
    rows.push_back(row_of(step));
    rows.back().steps.push_back(static_cast<int>(i));
  }
  for (CheckRow& row : rows) {
    if (const MathUnit* unit = device.unit(row.unit)) row.unit_kind = unit->kind;
    row.then_seconds = row.seconds;
  }
  return rows;
}

OpsByName ops_by_name(const Graph& graph) {
  OpsByName ops;
  for (const Op& op : graph.ops) ops.emplace(op.name, &op);
  return ops;
}

Subject subject_of(const Graph& graph, const Plan& plan, const Device& device, const CheckRow& row, const OpsByName& ops,
                   double model_seconds) {
  const PlanStep& step = plan.steps[static_cast<size_t>(row.steps.front())];
  Subject s{graph, device, plan, row, step, problem_of(step), {}, {}, model_seconds, {}, nullptr};
  for (const std::string& name : row.nodes)
    if (const auto at = ops.find(name); at != ops.end()) s.ops.push_back(at->second);
  if (s.problem) s.precision = precision_of(*s.problem);
  const bool attention = get_if<AttentionParams>(&step.stage.params) != nullptr && !step.stage.inputs.empty();
  std::optional<Precision> own = s.precision;
  if (attention) own = precision_of_type(step.stage.inputs[0].dtype);
  if (!own) return s;
  s.matrix_precision = own == Precision::fp32 ? narrow_precision(device) : own;
  if (s.matrix_precision) s.matrix = fastest_unit(device, *s.matrix_precision, UnitKind::matrix);
  return s;
}

}  // namespace sparkle
