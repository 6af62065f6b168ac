// What a model did on a device, step by step: times and rates beside the roofs that were probed between its runs, what was
// chosen and why, how much of the arithmetic matrix units did, which memory was in use when, and one run task by task.
#pragma once

#include <functional>

#include "measure/roofs/roof_judge.h"
#include "run/opening/open_model.h"

namespace sparkle {

struct ReportStep {
  std::string name, what, dtype;  // the node; "64x56x56 -> 64 3x3"; "f32"
  std::vector<std::string> nodes;
  std::string algorithm, variant, schedule, unit, reason;
  std::string bound;  // what the roof is: "compute" or a memory level; "launch" where the plan predicts that no roof counts
  RunsOn runs_on = RunsOn::device;
  UnitKind unit_kind = UnitKind::vector_fma;
  bool products = false;  // sums of products: what matrix units may do
  double seconds = 0, predicted_seconds = 0;
  double roof_seconds = 0;  // what the probed roofs allow
  double nominal_flops = 0;
  double executed_flops = 0;  // by the schedule, idle lanes among them
  double bytes = 0;           // operands and results, each once
  int64_t live_bytes = 0;     // of the arena while it runs
  RoofVerdict roofs;

  double useful_flops() const { return std::min(executed_flops, nominal_flops); }  // what roofs are compared with
  double gflops() const { return seconds > 0 ? nominal_flops / seconds * 1e-9 : 0; }
  double executed_gflops() const { return seconds > 0 ? useful_flops() / seconds * 1e-9 : 0; }
  double gbytes_per_s() const { return seconds > 0 ? bytes / seconds * 1e-9 : 0; }
  double share_of_roof() const { return seconds > 0 ? roof_seconds / seconds : 0; }
};

struct ModelReport {
  std::string model;
  Device device;         // with the rates that were probed
  bool measured = true;  // else nothing was run: times are what the plan predicts
  bool probed = false;   // between the runs; else rates are those of the description
  bool clock_of_device = false;
  std::vector<ReportStep> steps;
  double seconds = 0, predicted_seconds = 0;  // the median of runs without timestamps
  int runs = 0;
  double executed_flops = 0, on_matrix = 0;  // of sums of products; the share of them that matrix units executed
  int64_t weight_bytes = 0, arena_bytes = 0, peak_bytes = 0;
  RunReport traced;        // one more run, whose times are its own
  bool checked = false;    // outputs before, among and after the runs against plain loops (measure/checks/model_check.h)
  std::string check;       // what was compared, or "not compared: WHY"
  std::string above_roof;  // a step's rate above its roof, as a sentence: a bug in the measurement

  double steps_seconds() const;
  double roof_seconds() const;
  bool has_matrix_units() const;
};

// Whether outputs are compared with what plain loops give: where that takes some ten seconds, in any case, or not.
enum class OutputCheck : uint8_t { automatic, always, never };
std::string_view name_of(OutputCheck check);  // "auto", "always", "never"
bool parse_name(std::string_view text, OutputCheck& check);

struct ReportOptions {
  double seconds = 1;  // of runs with and without timestamps together, about
  int least = 5;       // runs of each kind
  bool probe = true;   // the roofs, some ten milliseconds each time
  OutputCheck check = OutputCheck::never;
  std::function<Result<ModelFile>()> model;          // that the session was opened of: what plain loops compute from
  std::string no_model;                              // why that is not given
  double accuracy = 0;                               // that the session was opened with
  std::function<void(double seconds)> before_check;  // told before plain loops begin, and for how long about
  std::function<Status()> between;                   // asked before each run and probe; its error ends the measurement
};

// Errors: those of Session::run, bad_usage where the device keeps no time; internal where an output is wrong.
Result<ModelReport> report_model(Session& session, const std::vector<HostTensor>& inputs, const ReportOptions& options = {});

// The same without a run: times are those that the plan predicts, roofs those of the device's description. Errors: those of
// Session::prepare, for which `inputs` need no memory but where shapes depend on their values.
Result<ModelReport> predict_report(Session& session, const std::vector<HostTensor>& inputs);

}  // namespace sparkle
