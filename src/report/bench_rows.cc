#include "report/bench_rows.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "device/device_json.h"

namespace sparkle {

BenchRow row_of(const std::string& name, const LayerMeasurement& m) {
  BenchRow row;
  row.name = name.empty() ? short_name(m.problem) : name;
  row.what = short_name(m.problem);
  row.problem = to_text(m.problem);
  row.algorithm = m.choice.algorithm;
  for (const Schedule& s : m.choice.schedules) row.schedule += (row.schedule.empty() ? "" : " ; ") + to_text(s);
  row.reason = m.choice.candidates.empty()
                   ? ""
                   : "lowest predicted cost of " + std::to_string(m.choice.candidates.size()) + " candidates";
  row.median_ms = m.median_seconds * 1e3, row.min_ms = m.min_seconds * 1e3, row.p95_ms = m.p95_seconds * 1e3;
  row.predicted_ms = m.choice.cost.seconds * 1e3;
  row.nominal_flops = m.problem.nominal_flops(), row.executed_flops = m.executed_flops;
  const ProblemOperands operands = operands_of(m.problem);
  row.bytes = static_cast<double>(operands.output.bytes());
  for (const TensorDesc& d : operands.inputs) row.bytes += static_cast<double>(d.bytes());
  row.peak_flops_per_second = m.peak_flops_per_second;
  row.roof_ms = m.roof_seconds * 1e3, row.bound = m.roof_bound;
  row.workspace_bytes = m.workspace_bytes, row.max_error = m.largest_error;
  return row;
}

namespace {
std::string line(const char* pattern, auto... values) {
  char text[400];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}
}  // namespace

std::string bench_table_heading() {
  return line("%-24s %-34s %-10s %9s %9s %8s %8s %7s %7s %7s %-8s %8s\n", "layer", "problem", "algorithm", "median ms",
              "min ms", "GFLOP/s", "executed", "% peak", "% roof", "GB/s", "bound", "error");
}

std::string bench_table_row(const BenchRow& r) {
  return line("%-24.24s %-34.34s %-10.10s %9.4f %9.4f %8.1f %8.1f %7.1f %7.1f %7.1f %-8s %8.1e\n", r.name.c_str(),
              r.what.c_str(), r.algorithm.c_str(), r.median_ms, r.min_ms, r.gflops(), r.executed_gflops(), r.percent_of_peak(),
              r.percent_of_roof(), r.gbytes_per_s(), r.bound.c_str(), r.max_error);
}

std::string bench_table_summary(const std::vector<BenchRow>& rows) {
  double total = 0, log_peak = 0, log_roof = 0;
  for (const BenchRow& r : rows) {
    total += r.median_ms;
    log_peak += std::log(std::max(r.percent_of_peak(), 1e-3));
    log_roof += std::log(std::max(r.percent_of_roof(), 1e-3));
  }
  const double n = std::max<double>(1, static_cast<double>(rows.size()));
  return line("%zu layers, sum of medians %.3f ms; geometric mean %.1f %% of the FMA peak, %.1f %% of the roof of each layer\n",
              rows.size(), total, std::exp(log_peak / n), std::exp(log_roof / n));
}

nlohmann::json bench_json(const Device& device, const std::vector<BenchRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const BenchRow& r : rows)
    list.push_back({{"name", r.name},
                    {"problem", r.problem},
                    {"dtype", r.dtype},
                    {"algorithm", r.algorithm},
                    {"schedule", r.schedule},
                    {"reason", r.reason},
                    {"median_ms", r.median_ms},
                    {"min_ms", r.min_ms},
                    {"p95_ms", r.p95_ms},
                    {"predicted_ms", r.predicted_ms},
                    {"gflops", r.gflops()},
                    {"executed_gflops", r.executed_gflops()},
                    {"gbytes_per_s", r.gbytes_per_s()},
                    {"percent_of_peak", r.percent_of_peak()},
                    {"percent_of_roof", r.percent_of_roof()},
                    {"bound", r.bound},
                    {"workspace_bytes", r.workspace_bytes},
                    {"max_error", r.max_error},
                    {"peers", nlohmann::json::object()}});
  return {{"device", nlohmann::json::parse(device_to_json(device))}, {"rows", list}};
}

std::string implausible(const std::vector<BenchRow>& rows) {
  for (const BenchRow& r : rows)
    if (r.peak_flops_per_second > 0 && r.executed_gflops() * 1e9 > 1.08 * r.peak_flops_per_second)
      return line(
          "Layer '%s' shows %.1f executed GFLOP/s, more than 8 %% above the probed peak of %.1f: the measurement is wrong.",
          r.name.c_str(), r.executed_gflops(), r.peak_flops_per_second * 1e-9);
  return {};
}

}  // namespace sparkle
