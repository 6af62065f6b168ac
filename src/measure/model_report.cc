#include "measure/model_report.h"

#include <algorithm>

#include "algorithms/problem.h"
#include "base/text/format.h"
#include "measure/checks/model_check.h"
#include "measure/roofs/plan_roofs.h"
#include "measure/step_times.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

// Attention and transforms are products too; their footprints are no part of what roofs judge.
bool has_products(Family family) { return counts_products(family) || family == Family::attention || family == Family::fft; }

std::string what_of(const PlanStep& step) {
  if (!step.problem.empty())
    if (const auto problem = from_text<Problem>(step.problem); problem.ok()) return short_name(*problem);
  return step.stage.outputs.empty() ? "" : step.stage.outputs[0].shape.to_string();
}

// Why this one: the cheapest candidate of another algorithm beside it. Candidates stand with the first stage of what an
// algorithm makes of a layer.
std::string reason_of(const PlanStep& step) {
  const Candidate* other = nullptr;
  double chosen = step.cost.seconds;
  size_t costed = 0;
  bool tuned = false;
  if (step.runs_on == RunsOn::link) return "what the host's steps cost beside";
  if (step.runs_on == RunsOn::host) return "the device has no kernel for it";
  for (const Candidate& c : step.candidates) {
    if (!c.cost || c.reason == Reason::no_kernel) continue;
    ++costed, tuned |= c.reason == Reason::tuned_other;
    if (c.reason == Reason::none) chosen = c.cost->seconds;
    else if (c.algorithm != step.algorithm && (!other || c.cost->seconds < other->cost->seconds)) other = &c;
  }
  if (costed == 0) return step.problem.empty() ? "nothing else does it" : "a stage of " + step.algorithm;
  if (tuned) return format("measured as the fastest of %zu candidates", costed);
  if (costed == 1) return "the only candidate";
  if (!other) return format("of %zu candidates, all of this algorithm", costed);
  const double times = other->cost->seconds / std::max(chosen, 1e-12);
  if (times < 1)
    return format("of %zu candidates; %s would take %.2f times as long, but: ", costed, other->algorithm.c_str(), times) +
           std::string(sentence_of(other->reason));
  return format("of %zu candidates; next algorithm %s at %.2f times the cost", costed, other->algorithm.c_str(), times);
}

ReportStep step_of(const PlanStep& step, double seconds, const Device& device) {
  ReportStep r;
  r.name = step.name, r.nodes = step.nodes, r.what = what_of(step);
  if (!step.stage.inputs.empty()) r.dtype = name_of(step.stage.inputs[0].dtype);
  r.algorithm = step.algorithm, r.variant = variant_of(step.schedule), r.schedule = to_text(step.schedule);
  r.unit = unit_of(step.schedule), r.reason = reason_of(step);
  if (const MathUnit* unit = device.unit(r.unit)) r.unit_kind = unit->kind;
  r.products = has_products(step.stage.family());
  r.seconds = seconds, r.predicted_seconds = step.cost.seconds;
  r.runs_on = step.runs_on;
  // The roofs are the device's: what the host does and what goes over the link is told by its prediction.
  const Cost roof = step.runs_on == RunsOn::device ? roof_of(step, device) : step.cost;
  r.roof_seconds = roof.seconds;
  r.bound = step.cost.bound == "launch" ? step.cost.bound : roof.bound;
  r.nominal_flops = step.footprint.nominal_flops, r.executed_flops = step.footprint.executed_flops;
  r.bytes = compulsory_bytes(step), r.live_bytes = step.live_bytes;
  return r;
}

constexpr double kPlainFlops = 1e9;       // what plain loops do in a second, about
constexpr double kMostCheckSeconds = 10;  // that nobody has to ask for

// What the outputs must be; nothing where they are not to be compared, which `report.check` explains then.
Result<std::optional<ModelCheck>> check_of(const Plan& plan, const std::vector<HostTensor>& inputs, const ReportOptions& o,
                                           ModelReport& report) {
  double flops = 0;
  for (const PlanStep& step : plan.steps) flops += step.footprint.nominal_flops;
  const double seconds = flops / kPlainFlops;
  report.check = "not compared: nobody asked for it";
  if (o.check == OutputCheck::never) return std::optional<ModelCheck>();
  report.check = "not compared: " + o.no_model;
  if (!o.model) return std::optional<ModelCheck>();
  report.check = format("not compared: plain loops would take some %.0f s, which only a check that is asked for may", seconds);
  if (o.check == OutputCheck::automatic && seconds > kMostCheckSeconds) return std::optional<ModelCheck>();
  SPARKLE_TRY(model, o.model());
  if (o.before_check && !model.compiled) o.before_check(seconds);
  SessionOptions options;
  if (o.accuracy > 0) options.accuracy = o.accuracy;
  SPARKLE_TRY(check, ModelCheck::make(std::move(model), plan, inputs, options));
  report.check = check.text();
  report.checked = check.possible();
  return report.checked ? std::optional(std::move(check)) : std::nullopt;
}

// Of runs on either of the bytes that memory is wiped to one tells what was not written, NaN or not.
Status check_wiped(Session& session, const std::vector<HostTensor>& inputs, std::optional<ModelCheck>& check,
                   std::byte wiped_to, const std::string& when) {
  if (!check) return ok();
  SPARKLE_TRY(outputs, session.run_wiped(inputs, wiped_to));
  return check->accept(outputs, when);
}

// What the plan tells, with what each of its steps took.
void describe_plan(ModelReport& report, const Session& session, const Plan& plan, const std::vector<double>& seconds) {
  report.model = plan.model;
  report.predicted_seconds = plan.predicted_seconds();
  report.weight_bytes = session.constant_bytes(), report.arena_bytes = plan.arena_bytes;
  report.peak_bytes = session.peak_bytes(plan);
  double matrix = 0;
  for (size_t i = 0; i < plan.steps.size() && i < seconds.size(); ++i) {
    ReportStep step = step_of(plan.steps[i], seconds[i], report.device);
    if (step.products) {
      report.executed_flops += step.executed_flops;
      if (step.unit_kind == UnitKind::matrix) matrix += step.executed_flops;
    }
    report.steps.push_back(std::move(step));
  }
  if (report.executed_flops > 0) report.on_matrix = matrix / report.executed_flops;
}

}  // namespace

std::string_view name_of(OutputCheck check) {
  switch (check) {
    case OutputCheck::automatic: return "auto";
    case OutputCheck::always: return "always";
    case OutputCheck::never: return "never";
  }
  return "?";
}
bool parse_name(std::string_view text, OutputCheck& check) {
  for (const OutputCheck c : {OutputCheck::automatic, OutputCheck::always, OutputCheck::never})
    if (name_of(c) == text) return check = c, true;
  return false;
}

double ModelReport::steps_seconds() const {
  double sum = 0;
  for (const ReportStep& step : steps) sum += step.seconds;
  return sum;
}

double ModelReport::roof_seconds() const {
  double sum = 0;
  for (const ReportStep& step : steps) sum += step.roof_seconds;
  return sum;
}

bool ModelReport::has_matrix_units() const {
  return std::any_of(device.units.begin(), device.units.end(), [](const MathUnit& u) { return u.kind == UnitKind::matrix; });
}

Result<ModelReport> report_model(Session& session, const std::vector<HostTensor>& inputs, const ReportOptions& options) {
  SPARKLE_TRY(plan, session.prepare(inputs));
  const std::shared_ptr<Backend> backend = session.backend();
  ModelReport report;
  SPARKLE_TRY(check, check_of(*plan, inputs, options, report));
  SPARKLE_CHECK(check_wiped(session, inputs, check, kWipedToNan, "before it was timed"));
  PlanRoofs roofs(*backend, *plan);
  std::function<void()> probe;
  if (options.probe) probe = [&] { roofs.take(); };
  SPARKLE_TRY(times, time_steps(session, inputs, options.seconds, options.least, probe, options.between));
  {
    if (options.between) SPARKLE_CHECK(options.between());
    SPARKLE_TRY(outputs, session.run_traced(inputs, report.traced));
    if (check) SPARKLE_CHECK(check->accept(outputs, "in the run that is drawn"));
  }
  SPARKLE_CHECK(check_wiped(session, inputs, check, kWipedToNumbers, "after it was timed"));
  if (check) report.check = check->text();
  report.device = options.probe ? roofs.device() : backend->device();
  report.probed = options.probe, report.clock_of_device = backend->keeps_time() && plan->host.empty();
  report.seconds = times.whole_seconds, report.runs = times.runs;
  describe_plan(report, session, *plan, times.steps);
  for (size_t i = 0; i < report.steps.size(); ++i) {
    ReportStep& step = report.steps[i];
    if (options.probe && step.runs_on == RunsOn::device) step.roofs = roofs.judge(plan->steps[i], times.steps[i]);
    if (report.above_roof.empty()) report.above_roof = step.roofs.error_text(step.name);
  }
  return report;
}

Result<ModelReport> predict_report(Session& session, const std::vector<HostTensor>& inputs) {
  SPARKLE_TRY(plan, session.prepare(inputs));
  ModelReport report;
  report.measured = false;
  report.device = session.backend()->device();
  report.check = "nothing was run";
  std::vector<double> seconds;
  for (const PlanStep& step : plan->steps) seconds.push_back(step.cost.seconds);
  describe_plan(report, session, *plan, seconds);
  report.seconds = report.predicted_seconds;
  return report;
}

}  // namespace sparkle
