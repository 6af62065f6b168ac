#include "check/check.h"

#include <algorithm>
#include <map>

#include "check/precisions.h"
#include "check/rows.h"
#include "check/rules.h"
#include "families/common.h"
#include "plan/choose/choose.h"

namespace sparkle {
namespace {

// Sums of products; blocks of convolutions in one step among them.
bool is_product(const CheckRow& row) {
  return row.kind == "conv" || row.kind == "conv_transpose" || row.kind == "matmul" || row.kind == "attention" ||
         row.kind == "inverted";
}

const Finding* found(const Verdict& v, const CheckRow& row, Reason code) {
  for (const int f : row.findings)
    if (v.findings[static_cast<size_t>(f)].code == code) return &v.findings[static_cast<size_t>(f)];
  return nullptr;
}

// A row of products with all mended that the model can mend: type, then groups, then sizes.
void mend_products(const Verdict& v, const Subject& s, CheckRow& row) {
  Problem then = *s.problem;
  Precision precision = s.precision.value_or(Precision::fp32);
  if (found(v, row, Reason::wide_type)) precision = *s.matrix_precision;
  if (found(v, row, Reason::float_island)) precision = Precision::int8;
  if (found(v, row, Reason::type_without_unit)) precision = Precision::fp32;
  const bool sizes = found(v, row, Reason::channels_unaligned) || found(v, row, Reason::features_unaligned);
  if (sizes && s.matrix && precision == s.matrix_precision) then = padded(then, *s.matrix);
  double best = s.seconds_if(then, precision);
  if (const Finding* f = found(v, row, Reason::grouped_channels); f && f->in_model) best = std::min(best, f->then_seconds);
  if (const Finding* f = found(v, row, Reason::mixed_types)) best = std::min(best, f->then_seconds);
  row.then_seconds = std::min(row.seconds, best);
}

// What moves bytes moves fewer of them in a narrower type.
double narrowed(const CheckRow& row, const Device& device, double share) {
  const double launch = std::min(row.seconds, device.launch_seconds * row.launches());
  return row.bound == "compute" ? row.seconds : launch + (row.seconds - launch) * share;
}

void mend(Verdict& v, const std::vector<Subject>& subjects) {
  const bool narrow =
      std::any_of(v.findings.begin(), v.findings.end(), [](const Finding& f) { return f.code == Reason::wide_type; });
  for (size_t i = 0; i < v.rows.size(); ++i) {
    CheckRow& row = v.rows[i];
    if (subjects[i].problem && subjects[i].problem->dtype != "f64") {
      mend_products(v, subjects[i], row);
      if (narrow && row.then_seconds == row.seconds && subjects[i].precision == Precision::fp32)
        row.then_seconds = narrowed(row, v.device, 0.5);
      continue;
    }
    for (const int f : row.findings)
      if (const Finding& finding = v.findings[static_cast<size_t>(f)]; finding.in_model)
        row.then_seconds = std::min(row.then_seconds, finding.then_seconds);
    if (narrow && row.types == "f32") row.then_seconds = std::min(row.then_seconds, narrowed(row, v.device, 0.5));
  }
}

void group(Verdict& v) {
  std::map<Reason, FindingGroup> groups;
  for (size_t i = 0; i < v.findings.size(); ++i) {
    FindingGroup& g = groups[v.findings[i].code];
    g.code = v.findings[i].code;
    g.findings.push_back(static_cast<int>(i));
    g.saved_seconds += v.findings[i].saved();
  }
  for (auto& [code, g] : groups) {
    std::stable_sort(g.findings.begin(), g.findings.end(), [&](int a, int b) {
      return v.findings[static_cast<size_t>(a)].saved() > v.findings[static_cast<size_t>(b)].saved();
    });
    v.groups.push_back(std::move(g));
  }
  std::stable_sort(v.groups.begin(), v.groups.end(),
                   [](const FindingGroup& a, const FindingGroup& b) { return a.saved_seconds > b.saved_seconds; });
}

// Where no kernel decides which types are read as they are, bf16 takes the steps that f16 takes: rows_of() knows which it is.
Graph in_one_16_bit_type(Graph graph) {
  for (GraphTensor& t : graph.tensors) {
    if (t.dtype == DType::bf16) t.dtype = DType::f16;
    if (t.constant && t.constant->dtype == DType::bf16) t.constant->dtype = DType::f16;
  }
  for (Op& op : graph.ops)
    if (auto* cast = std::get_if<CastOp>(&op.params); cast && cast->to == DType::bf16) cast->to = DType::f16;
  return graph;
}

}  // namespace

bool CheckRow::has_kernel() const { return kernel != kNoKernel; }

std::vector<OpenInput> open_inputs(const Graph& graph) {
  std::vector<OpenInput> open;
  for (const TensorId id : graph.inputs) {
    const GraphTensor& t = graph.tensor(id);
    std::string shape;
    bool any = !t.rank_known;
    for (int i = 0; i < t.shape.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      const bool named = at < t.axis_names.size() && !t.axis_names[at].empty();
      any |= t.shape[i] < 0;
      shape += (i ? "," : "") + (t.shape[i] >= 0 ? std::to_string(t.shape[i]) : named ? t.axis_names[at] : "?");
    }
    if (any) open.push_back({t.name, "[" + shape + "]"});
  }
  return open;
}

Verdict check_plan(const Graph& bound, const Plan& plan, const Device& device, const CheckOptions& options) {
  Verdict v;
  v.model = plan.model, v.device = device;
  v.kernels = has_backend(device), v.calibrated = plan.calibrated && device.calibrated;
  v.weight_bytes = static_cast<double>(plan.constant_bytes()), v.arena_bytes = static_cast<double>(plan.arena_bytes);
  v.rows = rows_of(bound, plan, device);
  for (const CheckRow& row : v.rows) v.seconds += row.seconds;
  const OpsByName ops = ops_by_name(bound);
  std::vector<Subject> subjects;
  subjects.reserve(v.rows.size());
  for (const CheckRow& row : v.rows) subjects.push_back(subject_of(bound, plan, device, row, ops, v.seconds));
  for (size_t i = 0; i < v.rows.size(); ++i)
    for (const Rule& rule : rules()) {
      auto finding = rule.find(subjects[i]);
      if (!finding) continue;
      finding->row = static_cast<int>(i);
      v.rows[i].findings.push_back(static_cast<int>(v.findings.size()));
      v.findings.push_back(std::move(*finding));
    }
  for (Finding& finding : model_findings(bound, device, v, options)) v.findings.push_back(std::move(finding));
  mend(v, subjects);
  group(v);
  for (const CheckRow& row : v.rows) {
    v.then_seconds += row.then_seconds;
    if (!is_product(row)) continue;
    v.flops += row.flops;
    if (row.unit_kind == UnitKind::matrix) v.on_matrix += row.flops;
    const bool mended = found(v, row, Reason::wide_type) || found(v, row, Reason::channels_unaligned) ||
                        found(v, row, Reason::features_unaligned) || found(v, row, Reason::head_unaligned) ||
                        found(v, row, Reason::float_island);
    if (row.unit_kind == UnitKind::matrix || mended) v.then_matrix += row.flops;
  }
  if (v.flops > 0) v.on_matrix /= v.flops, v.then_matrix /= v.flops;
  v.precisions = precisions_of(v, subjects);
  return v;
}

Result<Verdict> check_model(const Graph& bound, const Device& device, const CheckOptions& options) {
  if (!has_backend(device)) {
    SPARKLE_TRY(plan, make_plan(in_one_16_bit_type(bound), device, {options.plan, nullptr}));
    return check_plan(bound, plan, device, options);
  }
  SPARKLE_TRY(plan, make_plan(bound, device, {options.plan, nullptr}));
  return check_plan(bound, plan, device, options);
}

void add_measured(Verdict& v, const std::vector<double>& step_seconds, double whole_seconds) {
  v.measured_seconds = whole_seconds;
  for (CheckRow& row : v.rows) {
    row.measured_seconds = 0;
    for (const int step : row.steps)
      if (static_cast<size_t>(step) < step_seconds.size()) row.measured_seconds += step_seconds[static_cast<size_t>(step)];
  }
}

void assume_rounded_weights(Graph& graph) {
  for (GraphTensor& t : graph.tensors)
    if (t.constant && t.constant->dtype == DType::f32 && !t.fit) t.fit = WeightFit{Fit::rounded, Fit::rounded};
}

}  // namespace sparkle
