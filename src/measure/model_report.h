// What a model did on a device, step by step: times and rates beside the roofs that were probed between its runs, what was
// chosen and why, how much of the arithmetic matrix units did, which memory was in use when, and one run task by task.
#pragma once

#include "measure/roofs/roof_judge.h"
#include "run/session.h"

namespace sparkle {

struct ReportStep {
  std::string name, what, dtype;  // the node; "64x56x56 -> 64 3x3"; "f32"
  std::vector<std::string> nodes;
  std::string algorithm, variant, schedule, unit, reason;
  std::string bound;  // what the roof is: "compute" or a memory level; "launch" where the plan predicts that no roof counts
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
  Device device;        // with the rates that were probed
  bool probed = false;  // between the runs; else rates are those of the description
  bool clock_of_device = false;
  std::vector<ReportStep> steps;
  double seconds = 0, predicted_seconds = 0;  // the median of runs without timestamps
  int runs = 0;
  double executed_flops = 0, on_matrix = 0;  // of sums of products; the share of them that matrix units executed
  int64_t weight_bytes = 0, arena_bytes = 0, peak_bytes = 0;
  RunReport traced;        // one more run, whose times are its own
  std::string above_roof;  // a step's rate above its roof, as a sentence: a bug in the measurement

  double steps_seconds() const;
  double roof_seconds() const;
  bool has_matrix_units() const;
};

struct ReportOptions {
  double seconds = 1;  // of runs with and without timestamps together, about
  int least = 5;       // runs of each kind
  bool probe = true;   // the roofs, some ten milliseconds each time
};

// Errors: those of Session::run, device_unusable where the device keeps no time.
Result<ModelReport> report_model(Session& session, const std::vector<HostTensor>& inputs, const ReportOptions& options = {});

}  // namespace sparkle
