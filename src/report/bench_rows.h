// Rows of `bench`: what was run, how fast, how far from the roof; as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "device/device.h"
#include "measure/head_to_head.h"

namespace sparkle {

struct BenchRow {
  std::string name, problem, what, dtype = "f32", algorithm, schedule, reason;
  double median_ms = 0, min_ms = 0, p95_ms = 0, predicted_ms = 0;
  double nominal_flops = 0, executed_flops = 0, bytes = 0;
  double peak_flops_per_second = 0;  // probed beside the samples
  RoofVerdict verdict;               // against what was probed beside
  double roof_ms = 0;                // what the measured roofs allow
  std::string bound;
  int64_t workspace_bytes = 0;
  uint64_t host_transfers = 0;          // while it was timed
  bool clock_of_device = false;         // times without the host's part
  int repeats = 1;                      // runs in a sample
  double max_error = 0;                 // on the operands that were timed
  Checked checked;                      // how the outputs were compared
  std::vector<double> predicted_bytes;  // moved per memory level of the device, innermost first
  std::vector<PeerMeasurement> peers;
  double best_speedup = 0;  // against the fastest of them; 0: there are none
  double old_ms = 0;        // what somebody once published; 0: nothing
  std::string old_what;     // on what machine

  double gflops() const { return median_ms > 0 ? nominal_flops / median_ms * 1e-6 : 0; }
  double executed_gflops() const { return median_ms > 0 ? executed_flops / median_ms * 1e-6 : 0; }
  double gbytes_per_s() const { return median_ms > 0 ? bytes / median_ms * 1e-6 : 0; }
  double percent_of_roof() const { return median_ms > 0 ? 100 * roof_ms / median_ms : 0; }
  double percent_of_peak() const { return peak_flops_per_second > 0 ? 100 * gflops() * 1e9 / peak_flops_per_second : 0; }
};

BenchRow row_of(const NamedProblem& layer, const LayerMeasurement& m);
BenchRow row_of(const NamedProblem& layer, const HeadToHead& c);

std::string bench_table_heading();
std::string bench_table_row(const BenchRow& row);
// Geometric mean of the shares of peak and of the roof, sum of the medians.
std::string bench_table_summary(const std::vector<BenchRow>& rows);

// How the rows' outputs were compared, in a sentence; `seed`: with which all of it comes again.
std::string checks_summary(const std::vector<Checked>& checks, uint64_t seed);
std::string checks_summary(const std::vector<BenchRow>& rows, uint64_t seed);

// A line per row that has an old figure.
std::string old_figures(const std::vector<BenchRow>& rows);

// The same beside other engines: how many times as long each of them takes.
std::string head_to_head_heading(const std::vector<PeerMeasurement>& peers);
std::string head_to_head_row(const BenchRow& row);
// Geometric means against each peer and the best of each layer, and the layers where Sparkle does worst.
std::string head_to_head_summary(const std::vector<BenchRow>& rows);
nlohmann::json head_to_head_means(const std::vector<BenchRow>& rows);

// Optimisation steps or an ablation: what each does, its time over that of the row before (steps) or the first row (ablation),
// bytes predicted per memory level.
struct StepRow {
  BenchRow row;
  std::string what;
  std::string absent;  // why there is no figure
  int threads = 0;
  double factor = 0;  // steps: times as fast as the step before; ablation: what the pattern brings
};
std::string steps_heading(const std::string& title, const Device& device, bool ablation);
std::string step_row(const StepRow& row, const Device& device);
nlohmann::json steps_json(const Device& device, const std::vector<StepRow>& rows, bool ablation);

// Predicted traffic by the names of a device's memory levels, in bytes: an object, and a line that sums it up. A model's
// figure, not judged.
nlohmann::json traffic_json(const Device& device, const std::vector<double>& bytes);
std::string traffic_summary(const Device& device, const std::vector<std::vector<double>>& bytes);
std::string traffic_summary(const Device& device, const std::vector<BenchRow>& rows);

// {"device": {...}, "rows": [...]} in the documented form.
nlohmann::json bench_json(const Device& device, const std::vector<BenchRow>& rows);

// A rate above its roof is a bug in the measurement. Empty, or the sentence naming the first row, of Sparkle or a peer.
std::string above_roof(const std::vector<BenchRow>& rows);
// One line: each roof probed beside the rows, from the lowest to the highest, and the widest spread of one row's probes.
std::string probes_summary(const std::vector<RoofVerdict>& verdicts);
std::string probes_summary(const std::vector<BenchRow>& rows);
nlohmann::json roof_json(const RoofVerdict& verdict);

}  // namespace sparkle
