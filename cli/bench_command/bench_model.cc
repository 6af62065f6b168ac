#include "bench_command/bench_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/median.h"
#include "base/files/new_file.h"
#include "base/printable.h"
#include "backends/device_memory.h"
#include "bench_command/certificate.h"
#include "device/device_json.h"
#include "loaded_model.h"
#include "onnx/tensor_file.h"
#include "plan/explain.h"
#include "measure/layer_bench.h"
#include "measure/checks/model_check.h"
#include "report/bench_rows.h"
#include "run/opening/open_model.h"
#include "measure/roofs/plan_roofs.h"
#include "run/wipe.h"

namespace sparkle::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kProbes = 8;  // of the roofs, spread over the runs
// Samples of runs that are handed over at once, and about how long each is.
constexpr int kBursts = 9;
constexpr double kBurstSeconds = 10e-3;

double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

// Into the outputs of the run before, as the engines beside it do: two sets of them in turns leave the caches where one stays.
// Only the data tells how large open ones are, so these are made anew.
Status run_again(const LoadedModel& loaded, std::vector<HostTensor>& outputs, bool sizes_are_open) {
  if (!sizes_are_open) return loaded.session->run_into(loaded.inputs, outputs);
  SPARKLE_TRY(made, loaded.session->run(loaded.inputs));
  outputs = std::move(made);
  return ok();
}

// The protocol is described in bench/engines.py: start, run N, save D, quit.
int serve(const CommonOptions& common, const ModelBench& bench) {
  const auto begin = Clock::now();
  std::optional<LoadedModel> loaded;
  std::vector<HostTensor> outputs;
  bool sizes_are_open = false;
  const auto report = [&](const Error& error) {
    std::printf("error %s\n", printable_sentence(error.message).c_str());
    std::fflush(stdout);
    return status_of(error, common);
  };
  for (std::string line; std::getline(std::cin, line);) {
    const std::string verb = line.substr(0, line.find(' '));
    const std::string rest = line.size() > verb.size() ? line.substr(verb.size() + 1) : "";
    if (verb == "quit") break;
    if (verb == "start") {
      auto made = load_model(common, {bench.model, bench.inputs, bench.shapes}, Roofs::kept_or_estimated);
      if (!made.ok()) return report(made.error());
      loaded = std::move(*made);
      const double load_ms = ms_since(begin);
      const auto first = Clock::now();
      auto result = loaded->session->run(loaded->inputs);
      if (!result.ok()) return report(result.error());
      const double first_ms = ms_since(first);
      outputs = std::move(*result);
      auto plan = loaded->session->prepare(loaded->inputs);  // the one that just ran
      if (!plan.ok()) return report(plan.error());
      if (auto fast = check_fallback(**plan, common); !fast.ok()) return report(fast.error());
      sizes_are_open = !(*plan)->open.empty();
      std::printf("ready {\"load_ms\": %.3f, \"first_ms\": %.3f}\n", load_ms, first_ms);
    } else if (verb == "run" && loaded) {
      int64_t runs = 0;
      if (!record_detail::parse_number(rest, runs) || runs < 1 || runs > 1000000)
        return report({Reason::bad_usage, "'run' takes a count from 1 to 1000000."});
      std::string answer;
      for (int64_t i = 0; i < runs; ++i) {
        const auto start = Clock::now();
        const Status done = run_again(*loaded, outputs, sizes_are_open);
        const double taken = ms_since(start);
        if (!done.ok()) return report(done.error());
        char text[32];
        std::snprintf(text, sizeof text, i ? " %.4f" : "%.4f", taken);
        answer += text;
      }
      std::printf("%s\n", answer.c_str());
    } else if (verb == "save" && loaded) {
      // Of a run that can have found nothing in memory.
      auto result = loaded->session->run_wiped(loaded->inputs, kWipedToNan);
      if (!result.ok()) return report(result.error());
      outputs = std::move(*result);
      for (size_t i = 0; i < outputs.size(); ++i) {
        const std::string path = rest + "/output_" + std::to_string(i) + ".pb";
        if (auto saved = write_tensor_pb(path, loaded->session->outputs()[i].name, outputs[i]); !saved.ok())
          return report(saved.error());
      }
      std::printf("saved\n");
    } else {
      return report({Reason::bad_usage, "'" + line + "' is not understood here; say start, run N, save D or quit."});
    }
    std::fflush(stdout);
  }
  return kDone;
}

// Of runs on either of the bytes that memory is wiped to one tells what was not written, NaN or not.
Status check_wiped(Session& session, const std::vector<HostTensor>& inputs, ModelCheck& check, std::byte wiped_to,
                   const std::string& when) {
  SPARKLE_TRY(outputs, session.run_wiped(inputs, wiped_to));
  return check.possible() ? check.accept(outputs, when) : ok();
}

// What asking for the times of steps costs, and how much of a run they account for. Times from submission to completion. A
// device that is kept busy on purpose before its first step (`stalled`) tells neither.
class Profiling {
 public:
  void add(const RunReport& run, bool timestamps) {
    (timestamps ? timed_ : plain_).push_back(run.seconds * 1e3);
    if (!timestamps) return;
    double steps = 0;
    for (const StepReport& s : run.steps) steps += s.seconds;
    shares_.push_back(run.seconds > 0 ? steps / run.seconds : 0);
  }
  double plain_seconds() const { return median(plain_) * 1e-3; }
  nlohmann::json json(bool stalled) {
    nlohmann::json row = {{"plain_ms", median(plain_)}, {"with_timestamps_ms", median(timed_)}};
    if (!stalled) row["cost_percent"] = cost_percent(), row["steps_percent_of_run"] = 100 * median(shares_);
    return row;
  }
  void print(bool stalled) {
    if (stalled) {
      std::printf(
          "profiling: %.3f ms with timestamps, %.3f without, in turns; with them the device is kept busy until all launches "
          "are handed over\n",
          median(timed_), median(plain_));
      return;
    }
    std::printf(
        "profiling: %.3f ms with timestamps, %.3f without, in turns: they cost %+.1f %% (median of pairs); steps are "
        "%.1f %% of a timed run\n",
        median(timed_), median(plain_), cost_percent(), 100 * median(shares_));
  }

 private:
  // Of neighbours in time: what disturbs one run disturbs the other.
  double cost_percent() const {
    std::vector<double> quotients;
    for (size_t i = 0; i < std::min(plain_.size(), timed_.size()); ++i)
      if (plain_[i] > 0) quotients.push_back(timed_[i] / plain_[i]);
    return quotients.empty() ? 0 : 100 * (median(quotients) - 1);
  }
  std::vector<double> plain_, timed_, shares_;
};

// What a run takes by the device's own clock, many handed over at once: as engines beside it are timed by replays.
struct DeviceTime {
  double ms = 0;    // the median of the samples; 0: the device does not tell
  int repeats = 0;  // runs in a sample
};

// `about`: seconds of a run. At most `most` samples.
Result<DeviceTime> device_time(Session& session, const std::vector<HostTensor>& inputs, double about, int most) {
  const double seconds = std::max(about, 1e-6);
  DeviceTime time;
  time.repeats = std::clamp(static_cast<int>(kBurstSeconds / seconds), 1, 1000);
  const bool is_short = seconds < 10 * kBurstSeconds;  // so that the host's part would count
  const int samples = std::clamp(static_cast<int>(1 / (seconds * time.repeats)), 1, std::min(kBursts, most));
  if (samples > 1) {  // a graph's first launch takes longer
    SPARKLE_TRY(warm, session.seconds_of_run(inputs, {1, 0}));
    if (warm <= 0) return DeviceTime{};
  }
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    SPARKLE_TRY(one, session.seconds_of_run(inputs, {time.repeats, is_short ? 1 : 0}));
    if (one <= 0) return DeviceTime{};
    times.push_back(one * 1e3);
  }
  time.ms = median(times);
  return time;
}

}  // namespace

// What plain loops do in a second, about.
static constexpr double kPlainFlops = 1e9;
static constexpr double kPatience = 60;  // seconds; what takes longer the CPU's kernels say for a GPU

Result<ModelCheck> check_of(const CommonOptions& common, const ModelBench& bench, const LoadedModel& loaded) {
  return check_of(common, bench, *loaded.session, loaded.inputs, loaded.options);
}

Result<ModelCheck> check_of(const CommonOptions& common, const ModelBench& bench, Session& session,
                            const std::vector<HostTensor>& inputs, const SessionOptions& options) {
  SPARKLE_TRY(model, read_model(bench.model));
  SPARKLE_TRY(plan, session.prepare(inputs));
  double flops = 0;
  for (const PlanStep& step : plan->steps) flops += step.footprint.nominal_flops;
  const double seconds = flops / kPlainFlops;
  std::shared_ptr<Backend> judge;
  if (seconds > kPatience && session.backend()->device().has_workgroups()) {
    CommonOptions cpu = common;
    cpu.device = "cpu";
    SPARKLE_TRY(opened, open_device(cpu));
    judge = std::move(opened.backend);
  } else if (seconds > 3 && !model.compiled) {
    std::fprintf(stderr, "sparkle: computing what the outputs must be by plain loops, some %.0f s\n", seconds);
  }
  return ModelCheck::make(std::move(model), *plan, inputs, options, std::move(judge));
}

Status write_results(const std::string& path, const nlohmann::json& json) {
  const std::string text = certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return write_file(path, std::as_bytes(std::span(text)));
}

int bench_model(const CommonOptions& common, const ModelBench& bench) {
  if (bench.serve) return serve(common, bench);
  const auto begin = Clock::now();
  auto loaded = load_model(common, {bench.model, bench.inputs, bench.shapes}, Roofs::measured);
  if (!loaded.ok()) return fail(loaded.error(), common);
  Session& session = *loaded->session;
  auto first = session.run(loaded->inputs);
  if (!first.ok()) return fail(first.error(), common);
  const double first_answer_ms = ms_since(begin);
  // Before anything is measured that takes memory of its own.
  const auto* const memory = dynamic_cast<const DeviceMemory*>(session.backend().get());
  const int64_t device_bytes = memory ? memory->device_bytes() : 0;
  auto check = check_of(common, bench, *loaded);
  if (!check.ok()) return fail(check.error(), common);
  if (auto right = check_wiped(session, loaded->inputs, *check, kWipedToNan, "before it was timed"); !right.ok())
    return fail(right.error());
  RunReport report;
  if (auto warm = session.run(loaded->inputs, &report, true); !warm.ok()) return fail(warm.error());
  if (auto fast = check_fallback(*report.plan, common); !fast.ok()) return fail(fast.error(), common);
  // Each is a plain run and one with timestamps.
  const double in_all = bench.duration > 0 ? bench.duration / 2 : 1;
  const int runs =
      bench.runs > 0
          ? bench.runs
          : static_cast<int>(std::clamp(in_all / std::max(report.seconds, 1e-6), 5.0, bench.duration > 0 ? 1e6 : 2000.0));
  std::vector<double> totals;
  std::vector<std::vector<double>> steps(report.plan->steps.size());
  Profiling profiling;
  std::vector<HostTensor> last;
  PlanRoofs roofs(*session.backend(), *report.plan);
  const int apart = std::max(1, runs / kProbes);
  const auto timed_since = Clock::now();
  const auto goes_on = [&](int i) {
    return bench.duration > 0 ? i < 5 || (i < 1000000 && ms_since(timed_since) < 1e3 * bench.duration) : i < runs;
  };
  for (int i = 0; goes_on(i); ++i) {
    if (i % apart == 0) {
      roofs.take();  // and a run that brings back what the probes pushed out of the caches
      if (auto warm = session.run(loaded->inputs); !warm.ok()) return fail(warm.error());
    }
    // In turns, and each of the two as often the first.
    for (const bool timestamps : {i % 2 == 1, i % 2 == 0}) {
      const auto start = Clock::now();
      auto run = session.run(loaded->inputs, &report, timestamps);
      if (!run.ok()) return fail(run.error());
      const double taken = ms_since(start);
      last = std::move(*run);
      profiling.add(report, timestamps);
      if (!timestamps) totals.push_back(taken);
      for (size_t s = 0; timestamps && s < steps.size(); ++s) steps[s].push_back(report.steps[s].seconds * 1e3);
    }
  }
  auto on_device_alone = device_time(session, loaded->inputs, profiling.plain_seconds(), runs);
  if (!on_device_alone.ok()) return fail(on_device_alone.error());
  if (check->possible())
    if (auto right = check->accept(last, "in the last timed run"); !right.ok()) return fail(right.error());
  if (auto right = check_wiped(session, loaded->inputs, *check, kWipedToNumbers, "after it was timed"); !right.ok())
    return fail(right.error());
  const Spread time = spread_of(totals);
  std::vector<double> sorted = totals;
  std::sort(sorted.begin(), sorted.end());
  const double total = time.median;
  roofs.take();
  const Device device = roofs.device();
  std::vector<RoofVerdict> verdicts;
  std::string above;
  nlohmann::json rows = nlohmann::json::array();
  if (!common.json) {
    std::printf("%s; '%s'\n", loaded->device.note.c_str(), printable(report.plan->model).c_str());
    if (report.plan->budget_steps > 0) std::printf("%s\n", budget_note(*report.plan).c_str());
    std::printf("%-36s %-11s %9s %9s %8s %7s %7s %-8s\n", "step", "algorithm", "median ms", "predicted", "GFLOP/s", "% roof",
                "% time", "binds");
  }
  double sum = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    const PlanStep& step = report.plan->steps[s];
    const double ms = median(steps[s]);
    sum += ms;
    const double gflops = ms > 0 ? step.footprint.nominal_flops / ms * 1e-6 : 0;
    const double useful = std::min(step.footprint.executed_flops, step.footprint.nominal_flops);  // without idle lanes
    // The roofs are the device's: nothing judges what the host does, or the link.
    const bool on_device = step.runs_on == RunsOn::device;
    const RoofVerdict verdict = on_device ? roofs.judge(step, ms * 1e-3) : RoofVerdict{};
    verdicts.push_back(verdict);
    if (above.empty()) above = verdict.error_text(step.name);
    const double roof = ms > 0 && on_device ? 100 * roof_seconds(step, device) * 1e3 / ms : 0;
    if (!common.json)
      std::printf("%-36.36s %-11.11s %9.4f %9.4f %8.1f %7.1f %7.1f %-8s\n", printable(step.name).c_str(),
                  step.algorithm.c_str(), ms, step.cost.seconds * 1e3, gflops, roof, 100 * ms / total, step.cost.bound.c_str());
    rows.push_back({{"name", step.name},
                    {"problem", step.problem},
                    {"dtype", step.stage.inputs.empty() ? "" : std::string(name_of(step.stage.inputs[0].dtype))},
                    {"algorithm", step.algorithm},
                    {"runs_on", name_of(step.runs_on)},
                    {"schedule", to_text(step.schedule)},
                    {"median_ms", ms},
                    {"predicted_ms", step.cost.seconds * 1e3},
                    {"gflops", gflops},
                    {"executed_gflops", ms > 0 ? useful / ms * 1e-6 : 0},
                    {"percent_of_roof", roof},
                    {"roofs", roof_json(verdict)},
                    {"bound", step.cost.bound},
                    {"predicted_bytes", traffic_json(device, on_device ? step.footprint.bytes : std::vector<double>())},
                    {"workspace_bytes", step.workspace_bytes}});
  }
  const nlohmann::json all{{"device", nlohmann::json::parse(device_to_json(device))},
                           {"model", report.plan->model},
                           {"file", bench.model},
                           {"rows", rows},
                           {"profiling", profiling.json(on_device_alone->ms > 0)},
                           {"checked", check->text()},
                           {"total",
                            {{"median_ms", total},
                             {"min_ms", time.min},
                             {"p50_ms", percentile(sorted, 50)},
                             {"p90_ms", percentile(sorted, 90)},
                             {"p95_ms", time.p95},
                             {"p99_ms", percentile(sorted, 99)},
                             {"runs", totals.size()},
                             {"steps_ms", sum},
                             {"device_ms", on_device_alone->ms},
                             {"device_repeats", on_device_alone->repeats},
                             {"first_answer_ms", first_answer_ms},
                             {"budget_steps", report.plan->budget_steps},
                             {"budget_lost_ms", report.plan->budget_seconds * 1e3},
                             {"peak_bytes", session.peak_bytes(*report.plan)},
                             {"device_bytes", device_bytes}}}};
  if (!bench.output.empty())
    if (auto written = write_results(bench.output, all); !written.ok()) return fail(written.error());
  if (common.json) {
    std::printf("%s\n", certified(all).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    const std::string on_device = memory ? ", on the device " + format_bytes(device_bytes) : "";
    std::printf(
        "%zu runs: median %.3f ms, min %.3f, p90 %.3f, p95 %.3f, p99 %.3f; steps add up to %.3f ms; first answer %.1f ms; peak "
        "memory %s%s\n",
        totals.size(), total, time.min, percentile(sorted, 90), time.p95, percentile(sorted, 99), sum, first_answer_ms,
        format_bytes(session.peak_bytes(*report.plan)).c_str(), on_device.c_str());
    if (on_device_alone->ms > 0)
      std::printf("by the device's clock: %.4f ms a run, %d handed over at once; inputs and outputs stay there\n",
                  on_device_alone->ms, on_device_alone->repeats);
    profiling.print(on_device_alone->ms > 0);
    std::vector<std::vector<double>> traffic;
    for (const PlanStep& step : report.plan->steps)
      if (step.runs_on == RunsOn::device) traffic.push_back(step.footprint.bytes);
    std::fputs((traffic_summary(device, traffic) + probes_summary(verdicts)).c_str(), stdout);
    std::printf("outputs checked before, in the last and after the timed runs: %s\n", check->text().c_str());
  }
  return end_of_bench(above);
}

}  // namespace sparkle::cli
