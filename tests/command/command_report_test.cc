// `sparkle report` as a person uses it: text and JSON of a measured run, its page, its trace (spans nest, none is negative,
// they fit into the run), names of steps for a profiler that listens, what it refuses.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "command/command.h"

namespace sparkle::testing {
namespace {

using nlohmann::json;

const std::string kFile = (kSource / "models/upscale2x.onnx").string();
const std::string kModel = kFile + " --shape image=1x3x48x64 --runs 2";
const std::string kLarge = kFile + " --shape image=1x3x270x480 --runs 1";

class CommandReport : public Command {
 protected:
  json reported(const std::string& arguments) const {
    const Said said = sparkle("report " + arguments + " --json");
    EXPECT_EQ(said.status, 0) << said.err;
    return json::parse(said.out, nullptr, false);
  }
};

TEST_F(CommandReport, SaysWhatEachStepDidAndWhy) {
  const Said said = sparkle("report " + kModel + " --threads 1");
  EXPECT_EQ(said.status, 0) << said.err;
  for (const char* part : {"a pass takes", "the median of 2", "the roofs probed beside", "on matrix units", "at peak", "% roof",
                           "candidates; next algorithm"})
    EXPECT_SAYS(said.out, part);
  const json all = reported(kModel + " --threads 1");
  ASSERT_GT(all["steps"].size(), 3u);
  double sum = 0, executed = 0, matrix = 0;
  for (const json& step : all["steps"]) {
    sum += step["measured_ms"].get<double>();
    EXPECT_GT(step["measured_ms"], 0) << step;
    EXPECT_GT(step["roof_ms"], 0) << step;
    EXPECT_FALSE(step["reason"].get<std::string>().empty()) << step;
    EXPECT_GE(step["live_bytes"], 0) << step;
    EXPECT_LE(step["live_bytes"], all["arena_bytes"]) << step;
    EXPECT_TRUE(step["roofs"].is_object()) << step;
    if (step["unit_kind"] == "matrix") matrix += step["executed_flops"].get<double>();
    executed += step["executed_flops"].get<double>();
  }
  EXPECT_NEAR(sum, all["steps_ms"].get<double>(), 1e-9);
  EXPECT_GT(all["peak_bytes"], all["arena_bytes"]);
  EXPECT_EQ(all["matrix_share"].get<double>() > 0, matrix > 0);
  EXPECT_GE(executed, all["executed_flops"].get<double>());
}

// The fullest step fills the arena up to what its places leave open.
TEST_F(CommandReport, MemoryInUseReachesTheArena) {
  const json all = reported(kLarge);
  double most = 0;
  for (const json& step : all["steps"]) most = std::max(most, step["live_bytes"].get<double>());
  EXPECT_GT(most, 0.8 * all["arena_bytes"].get<double>());
}

struct Span {
  std::string name;
  double begin, end;
};

// Tracks of a trace by their names.
std::map<std::string, std::vector<Span>> tracks(const json& trace) {
  std::map<int, std::string> names;
  std::map<std::string, std::vector<Span>> found;
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == "M" && e["name"] == "thread_name") names[e["tid"]] = e["args"]["name"];
  for (const json& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    EXPECT_TRUE(names.count(e["tid"])) << e;
    EXPECT_GE(e["ts"], 0) << e;
    EXPECT_GE(e["dur"], 0) << e;
    const double begin = e["ts"], duration = e["dur"];
    found[names[e["tid"]]].push_back({e["name"], begin, begin + duration});
  }
  return found;
}

// On one track a span lies within another one or beside it.
void expect_nested(std::vector<Span> spans, const std::string& track) {
  constexpr double kRounding = 1e-6;  // us
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::vector<Span> open;
  for (const Span& s : spans) {
    while (!open.empty() && open.back().end <= s.begin + kRounding) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(s.end, open.back().end + kRounding) << track << ": " << s.name << " in " << open.back().name;
    }
    open.push_back(s);
  }
}

void expect_trace(const std::string& text, const json& report) {
  const json trace = json::parse(text, nullptr, false);
  ASSERT_TRUE(trace.is_object());
  const auto found = tracks(trace);
  ASSERT_TRUE(found.count("caller"));
  const Span run = found.at("caller").front();
  EXPECT_EQ(run.name, "run");
  size_t steps = 0;
  for (const auto& [track, spans] : found) {
    expect_nested(spans, track);
    for (const Span& s : spans) {
      EXPECT_GE(s.begin, run.begin) << track;
      EXPECT_LE(s.end, run.end + 1e-6) << track << " " << s.name;
    }
  }
  double sum = 0;
  for (const json& e : trace["traceEvents"]) {
    if (e.value("cat", "") != "step") continue;
    ++steps, sum += e["dur"].get<double>();
    for (const char* key : {"algorithm", "variant", "flops", "bytes"}) EXPECT_TRUE(e["args"].contains(key)) << e;
  }
  EXPECT_EQ(steps, report["steps"].size());
  EXPECT_LE(sum, run.end - run.begin);
}

TEST_F(CommandReport, WritesATraceOfAllThreads) {
  const json all = reported(kLarge + " --threads 2 --trace trace.json");
  const std::string text = text_of("trace.json");
  expect_trace(text, all);
  const json trace = json::parse(text);
  const auto found = tracks(trace);
  for (const char* track : {"steps", "thread 0 (the caller's)", "thread 1"}) EXPECT_TRUE(found.count(track)) << track;
  // Each task lies within the step that it is of.
  std::map<int, Span> steps;
  int at = 0;
  for (const Span& s : found.at("steps")) steps[at++] = s;
  int tasks = 0;
  for (const json& e : trace["traceEvents"]) {
    if (e.value("cat", "") != "task") continue;
    const Span& step = steps.at(e["args"]["step"]);
    const double begin = e["ts"], end = begin + e["dur"].get<double>();
    EXPECT_EQ(e["name"], step.name);
    EXPECT_GE(begin, step.begin - 1e-6);
    EXPECT_LE(end, step.end + 1e-6);
    ++tasks;
  }
  EXPECT_GT(tasks, at);
  EXPECT_SAYS(text, "tensors in use");
}

// A library as CUDA brings it, and a tool that has announced itself: each step between its name and an end, in every run.
TEST_F(CommandReport, NamesStepsForAProfilerThatListens) {
  const std::string with =
      "export LD_LIBRARY_PATH=" + std::string(SPARKLE_FAKE_NVTX) + " FAKE_NVTX_LOG='" + path("nvtx.txt") + "';";
  const std::string command = "report " + kModel + " --threads 2 --json";
  Said said = sparkle(command, with);
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(text_of("nvtx.txt"), "") << "nobody listens";
  said = sparkle(command, with + " export NVTX_INJECTION64_PATH=a_tool.so;");
  ASSERT_EQ(said.status, 0) << said.err;
  std::string once;
  const json all = json::parse(said.out);
  for (const json& step : all["steps"]) once += step["name"].get<std::string>() + "\n.\n";
  ASSERT_FALSE(once.empty());
  const std::string log = text_of("nvtx.txt");
  ASSERT_GE(log.size(), 4 * once.size());  // two runs with times of steps and two without, at least
  for (size_t i = 0; i + once.size() <= 4 * once.size(); i += once.size()) EXPECT_EQ(log.substr(i, once.size()), once);
  EXPECT_EQ(log.size() % once.size(), 0u);
  // Without the library all goes on as before.
  EXPECT_EQ(sparkle(command, "export NVTX_INJECTION64_PATH=a_tool.so;").status, 0);
}

TEST_F(CommandReport, RefusesBeforeAnythingRuns) {
  EXPECT_SAYS(refusal("report missing.onnx"), "missing.onnx");
  EXPECT_SAYS(refusal("report " + kModel + " --html nowhere/page.html"), "nowhere");
  EXPECT_SAYS(refusal("report " + kModel + " --trace nowhere/trace.json"), "nowhere");
  EXPECT_SAYS(refusal("report " + kModel + " --device h200"), "only describes a machine");
}

TEST_F(CommandReport, ServesTheReferenceAndVulkan) {
  expect_trace((reported(kModel + " --device reference --fallback allow --trace a.json"), text_of("a.json")),
               reported(kModel + " --device reference --fallback allow"));
  const Said said = sparkle("report " + kModel + " --device vulkan --json --trace b.json");
  if (said.status == 2) GTEST_SKIP() << said.err;
  ASSERT_EQ(said.status, 0) << said.err;
  const json all = json::parse(said.out);
  EXPECT_TRUE(all["device_clock"]);
  expect_trace(text_of("b.json"), all);
  EXPECT_TRUE(tracks(json::parse(text_of("b.json"))).count("compute queue (the device's clock)"));
}

}  // namespace
}  // namespace sparkle::testing
