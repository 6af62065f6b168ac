// A measured run by made-up numbers: what text, JSON, page and trace say of it, and that they say the same.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/report_text.h"

namespace sparkle {
namespace {

using nlohmann::json;

// Three steps on a device with vectors and a matrix unit: two products, 3/4 of the operations on the matrix unit, and a copy.
ModelReport made_up() {
  ModelReport r;
  r.model = "net", r.device.name = "a machine";
  MathUnit fma, matrix;
  fma.name = "vectors", fma.total_flops_per_second = 1e11;
  matrix.name = "tiles", matrix.kind = UnitKind::matrix, matrix.total_flops_per_second = 1e12;
  r.device.units = {fma, matrix};
  MemoryLevel memory;
  memory.name = "RAM", memory.total_bytes_per_second = 2e10;
  r.device.memory = {memory};
  r.probed = true, r.runs = 7;
  const auto step = [&](const char* name, const char* unit, UnitKind kind, double ms, double flops, int64_t live) {
    ReportStep s;
    s.name = name, s.what = "8x8", s.dtype = "f32", s.algorithm = "gemm", s.variant = "tile", s.schedule = "gemm tile";
    s.unit = unit, s.unit_kind = kind, s.reason = std::string("why ") + name, s.bound = flops > 0 ? "compute" : "RAM";
    s.products = flops > 0, s.nominal_flops = s.executed_flops = flops;
    s.seconds = ms * 1e-3, s.predicted_seconds = ms * 0.9e-3, s.roof_seconds = ms * 0.5e-3, s.bytes = 1e6, s.live_bytes = live;
    r.steps.push_back(s);
  };
  step("first", "vectors", UnitKind::vector_fma, 2, 1e8, 3000);
  step("second", "tiles", UnitKind::matrix, 1, 3e8, 4096);
  step("moved", "", UnitKind::vector_fma, 0.5, 0, 1024);
  r.seconds = 3.6e-3, r.predicted_seconds = 3.1e-3, r.executed_flops = 4e8, r.on_matrix = 0.75;
  r.weight_bytes = 10000, r.arena_bytes = 4096, r.peak_bytes = 20000;
  r.checked = true, r.check = "all 64 values of 1 output";
  r.traced.before_seconds = 1e-4, r.traced.seconds = 4e-3, r.traced.after_seconds = 1e-4;
  r.traced.steps = {{2e-3, 0}, {1e-3, 2e-3}, {5e-4, 3e-3}};
  r.traced.tasks = {{0, 0, 0, 1e-3}, {0, 1, 0, 2e-3}, {1, 1, 2e-3, 3e-3}};
  return r;
}

json trace_of(const ModelReport& r) { return json::parse(model_report_trace(r), nullptr, false); }

std::map<int, std::string> tracks_of(const json& trace) {
  std::map<int, std::string> names;
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == "M" && e["name"] == "thread_name") names[e["tid"]] = e["args"]["name"];
  return names;
}

TEST(Report, EachColumnIsInTextJsonAndPage) {
  const ModelReport r = made_up();
  const std::string text = model_report_text(r), page = model_report_html(r);
  const json all = model_report_json(r);
  for (const char* part : {"first", "why second", "all 64 values of 1 output", "gemm", "compute", "RAM", "75"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_DOUBLE_EQ(all["matrix_share"], 0.75);
  EXPECT_EQ(all["matrix_share_basis"], "schedules");
  EXPECT_EQ(all["outputs_checked"], true);
  EXPECT_EQ(all["check"], "all 64 values of 1 output");
  ASSERT_EQ(all["steps"].size(), 3u);
  const json& first = all["steps"][0];
  EXPECT_DOUBLE_EQ(first["measured_ms"], 2);
  EXPECT_DOUBLE_EQ(first["percent_of_roof"], 50);
  EXPECT_DOUBLE_EQ(first["gflops"], 50);
  EXPECT_DOUBLE_EQ(first["gbytes_per_s"], 0.5);
  EXPECT_EQ(first["live_bytes"], 3000);
  for (const char* key : {"algorithm", "variant", "unit", "unit_kind", "reason", "bound", "predicted_ms", "roof_ms",
                          "executed_gflops", "executed_flops", "bytes", "schedule"})
    EXPECT_TRUE(first.contains(key)) << key;
  EXPECT_DOUBLE_EQ(all["steps_ms"], 3.5);
}

TEST(Report, SaysWhereNothingWasCompared) {
  ModelReport r = made_up();
  r.checked = false, r.check = "not compared: nobody asked for it";
  for (const std::string& said : {model_report_text(r), model_report_html(r), model_report_json(r).dump()})
    EXPECT_NE(said.find("not compared: nobody asked for it"), std::string::npos);
  EXPECT_EQ(model_report_json(r)["outputs_checked"], false);
}

TEST(Report, SaysWhereNothingWasRun) {
  ModelReport r = made_up();
  r.measured = r.probed = false, r.runs = 0, r.seconds = r.predicted_seconds;
  EXPECT_NE(model_report_text(r).find("as the plan predicts"), std::string::npos);
  const PageTarget page = model_report_page(r);
  EXPECT_NE(page.basis.find("predicted by the plan"), std::string::npos);
  EXPECT_FALSE(page.sure);
  for (const std::string& said : {model_report_text(r), page.basis + page.seconds_name + page.headline_note})
    EXPECT_EQ(said.find("measured"), std::string::npos) << said;
  const json all = model_report_json(r);
  EXPECT_EQ(all["measured"], false);
  EXPECT_TRUE(all["measured_ms"].is_null());
  EXPECT_TRUE(all["steps"][0]["measured_ms"].is_null());
  EXPECT_DOUBLE_EQ(all["steps"][0]["percent_of_roof"], 50);
}

// What Chrome's format asks of each kind of event; viewers drop events that lack it.
TEST(Report, TracesAreChromesFormat) {
  for (const bool device_clock : {false, true}) {
    ModelReport r = made_up();
    r.clock_of_device = device_clock;
    if (device_clock) r.traced.tasks.clear();
    const json trace = trace_of(r);
    ASSERT_TRUE(trace.is_object());
    const std::map<int, std::string> names = tracks_of(trace);
    std::map<std::string, int> kinds;
    double counted = -1;
    for (const json& e : trace["traceEvents"]) {
      ASSERT_TRUE(e["ph"].is_string() && e["pid"].is_number_integer() && e["name"].is_string()) << e;
      ++kinds[e["ph"]];
      if (e["ph"] == "M") {
        EXPECT_TRUE(e["args"].is_object()) << e;
        continue;
      }
      EXPECT_GE(e["ts"].get<double>(), 0) << e;
      if (e["ph"] == "C") {  // counters in the order of time
        EXPECT_GT(e["ts"].get<double>(), counted) << e;
        counted = e["ts"];
        EXPECT_TRUE(e["args"]["bytes"].is_number()) << e;
      }
      if (e["ph"] != "X") continue;
      EXPECT_GE(e["dur"].get<double>(), 0) << e;
      EXPECT_TRUE(names.contains(e["tid"])) << "a span on a track without a name: " << e;
      EXPECT_TRUE(e["args"].is_object()) << e;
    }
    EXPECT_EQ(kinds["C"], 4);
    std::set<std::string> tracks;
    for (const auto& [id, name] : names) tracks.insert(name);
    const std::set<std::string> wanted = device_clock
                                             ? std::set<std::string>{"caller", "compute queue (the device's clock)"}
                                             : std::set<std::string>{"caller", "steps", "thread 0 (the caller's)", "thread 1"};
    EXPECT_EQ(tracks, wanted);
    EXPECT_EQ(kinds["X"], device_clock ? 4 + 3 : 4 + 3 + 3 + 1);  // a step that was not shared is its caller's
  }
}

TEST(Report, TracesSayWhatTheyLack) {
  ModelReport r = made_up();
  const auto notes = [](const json& trace) {
    std::vector<std::string> found;
    for (const json& e : trace["traceEvents"])
      if (e["ph"] == "i") found.push_back(e["name"]);
    return found;
  };
  EXPECT_TRUE(notes(trace_of(r)).empty());
  EXPECT_EQ(trace_of(r)["otherData"]["tasks left out"], 0);
  r.traced.tasks_left_out = 11;
  EXPECT_EQ(notes(trace_of(r)), std::vector<std::string>{"11 tasks of threads are not drawn; steps are whole"});
  EXPECT_EQ(trace_of(r)["otherData"]["tasks left out"], 11);
  EXPECT_EQ(model_report_json(r)["trace_tasks_left_out"], 11);
}

}  // namespace
}  // namespace sparkle
