// A measured run as one JSON object.
#include <nlohmann/json.hpp>

#include "report/bench_rows.h"
#include "report/report_text.h"

namespace sparkle {

using nlohmann::json;

namespace {

json measured_ms(const ModelReport& r, double seconds) { return r.measured ? json(seconds * 1e3) : json(); }

}  // namespace

json model_report_json(const ModelReport& r) {
  json steps = json::array();
  for (const ReportStep& s : r.steps) {
    json step{{"name", s.name},
              {"nodes", s.nodes},
              {"what", s.what},
              {"dtype", s.dtype},
              {"algorithm", s.algorithm},
              {"runs_on", name_of(s.runs_on)},
              {"variant", s.variant},
              {"schedule", s.schedule},
              {"unit", s.unit},
              {"unit_kind", name_of(s.unit_kind)},
              {"reason", s.reason},
              {"bound", s.bound},
              {"measured_ms", measured_ms(r, s.seconds)},
              {"predicted_ms", s.predicted_seconds * 1e3},
              {"roof_ms", s.roof_seconds * 1e3},
              {"percent_of_roof", 100 * s.share_of_roof()},
              {"gflops", s.gflops()},
              {"executed_gflops", s.executed_gflops()},
              {"gbytes_per_s", s.gbytes_per_s()},
              {"flops", s.nominal_flops},
              {"executed_flops", s.executed_flops},
              {"bytes", s.bytes},
              {"live_bytes", s.live_bytes}};
    if (r.probed) step["roofs"] = roof_json(s.roofs);
    steps.push_back(std::move(step));
  }
  return {{"model", r.model},
          {"device", r.device.name},
          {"device_clock", r.clock_of_device},
          {"roofs_probed", r.probed},
          {"runs", r.runs},
          {"measured", r.measured},
          {"measured_ms", measured_ms(r, r.seconds)},
          {"steps_ms", r.steps_seconds() * 1e3},
          {"predicted_ms", r.predicted_seconds * 1e3},
          {"roof_ms", r.roof_seconds() * 1e3},
          {"executed_flops", r.executed_flops},
          {"matrix_share", r.on_matrix},
          {"matrix_share_basis", "schedules"},  // nothing here reads a device's counters yet
          {"peak_bytes", r.peak_bytes},
          {"weight_bytes", r.weight_bytes},
          {"arena_bytes", r.arena_bytes},
          {"outputs_checked", r.checked},
          {"check", r.check},
          {"trace_tasks", r.traced.tasks.size()},
          {"trace_tasks_left_out", r.traced.tasks_left_out},
          {"above_roof", r.above_roof},
          {"steps", steps}};
}

}  // namespace sparkle
