#include "check/check.h"

#include <algorithm>
#include <map>
#include <set>

#include "check/precisions.h"
#include "check/rows.h"
#include "check/rules.h"
#include "plan/choose/choose.h"
#include "plan/memory/budget.h"

namespace sparkle {
namespace {

const Finding* found(const Verdict& v, const CheckRow& row, Reason code) {
  for (const int f : row.findings)
    if (v.findings[static_cast<size_t>(f)].code == code) return &v.findings[static_cast<size_t>(f)];
  return nullptr;
}

// A row of products with all mended that `fix` mends: the type, and sizes.
void mend_products(const Verdict& v, const Subject& s, CheckRow& row) {
  Precision precision = s.precision.value_or(Precision::fp32);
  if (found(v, row, Reason::wide_type)) precision = *s.matrix_precision;
  const bool sizes = s.matrix && precision == s.matrix_precision;
  row.then_seconds = std::min(row.seconds, s.seconds_if(sizes ? s.as_fixed(precision) : *s.problem, precision));
}

// What moves bytes moves fewer of them in a narrower type.
double narrowed(const CheckRow& row, const Device& device, double share) {
  const double launch = std::min(row.seconds, device.launch_seconds * row.launches());
  return row.bound == "compute" ? row.seconds : launch + (row.seconds - launch) * share;
}

// The copies that come with padding, of each precision in which some layer is padded.
double borders(const Verdict& v, const std::vector<Subject>& subjects, AskedPaddings& asked) {
  std::set<Precision> padded;
  for (size_t i = 0; i < v.rows.size(); ++i)
    for (const Reason code : {Reason::channels_unaligned, Reason::features_unaligned, Reason::head_unaligned})
      if (const Finding* f = found(v, v.rows[i], code); f && f->by_fix) padded.insert(*subjects[i].matrix_precision);
  double seconds = 0;
  for (const Precision precision : padded) seconds += asked.in(precision).border_seconds;
  return seconds;
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
      if (const Finding& finding = v.findings[static_cast<size_t>(f)]; finding.by_fix)
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

}  // namespace

bool is_product(const CheckRow& row) {
  return row.kind == "conv" || row.kind == "conv_transpose" || row.kind == "matmul" || row.kind == "attention" ||
         row.kind == "inverted";
}

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
  v.kernels = has_all_kernels(plan), v.calibrated = plan.calibrated && device.calibrated;
  v.weight_bytes = static_cast<double>(plan.constant_bytes());
  v.packed_bytes = static_cast<double>(packed_constant_bytes(plan, device)),
  v.arena_bytes = static_cast<double>(plan.arena_bytes);
  v.rows = rows_of(plan, device);
  for (const CheckRow& row : v.rows) v.seconds += row.seconds;
  const OpsByName ops = ops_by_name(bound);
  std::vector<Subject> subjects;
  subjects.reserve(v.rows.size());
  AskedPaddings asked(options, device);
  for (const CheckRow& row : v.rows) {
    subjects.push_back(subject_of(bound, plan, device, row, ops, v.seconds));
    subjects.back().asked = &asked;
  }
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
  v.then_seconds = borders(v, subjects, asked);
  for (const CheckRow& row : v.rows) {
    v.then_seconds += row.then_seconds;
    if (!is_product(row)) continue;
    v.flops += row.flops;
    if (row.unit_kind == UnitKind::matrix) v.on_matrix += row.flops;
    const bool mended =
        std::any_of(row.findings.begin(), row.findings.end(), [&](int f) { return v.findings[static_cast<size_t>(f)].by_fix; });
    if (row.unit_kind == UnitKind::matrix || mended) v.then_matrix += row.flops;
  }
  v.then_seconds = std::min(v.then_seconds, v.seconds);
  if (v.flops > 0) v.on_matrix /= v.flops, v.then_matrix /= v.flops;
  v.precisions = precisions_of(v, subjects);
  return v;
}

Result<Verdict> check_model(const Graph& bound, const Device& device, const CheckOptions& options) {
  SPARKLE_TRY(plan, make_plan(bound, device, {options.plan, nullptr}));
  return check_plan(bound, plan, device, options);
}

Result<std::vector<CheckRow>> predicted_rows(const Graph& bound, const Device& device, const PlanSettings& settings) {
  SPARKLE_TRY(plan, make_plan(bound, device, {settings, nullptr}));
  return rows_of(plan, device);
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
