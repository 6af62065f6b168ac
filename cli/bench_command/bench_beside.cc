#include "bench_command/bench_beside.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/median.h"
#include "base/printable.h"
#include "base/system/cpu_count.h"
#include "base/system/denormals.h"
#include "bench_command/certificate.h"
#include "device/device_json.h"
#include "peers/onnxruntime_model.h"
#include "peers/peers.h"
#include "report/criterion.h"

namespace sparkle::cli {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

std::vector<std::string> names_of(const std::vector<SessionInput>& values) {
  std::vector<std::string> names;
  for (const SessionInput& v : values) names.push_back(v.name);
  return names;
}

// Both engines with the model open and its inputs given, each in the outputs of its run before.
struct HeadToHeadModels {
  LoadedModel ours;
  std::unique_ptr<RuntimeModel> theirs;
  std::vector<HostTensor> outputs;
  bool open_sizes = false;  // which only the data tells: outputs are made anew
  std::vector<double> ours_ms, theirs_ms, ratios;
  double largest_error = 0;

  Status run_ours() {
    if (!open_sizes) return ours.session->run_into(ours.inputs, outputs);
    SPARKLE_TRY(made, ours.session->run(ours.inputs));
    outputs = std::move(made);
    return ok();
  }
  Status run_theirs() { return theirs->run(!open_sizes); }

  Status compare(const Criterion& criterion, const std::string& when) {
    SPARKLE_TRY(expected, theirs->results());
    const auto& infos = ours.session->outputs();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Comparison c = criterion.compare(outputs[o], expected[o]);
      largest_error = std::max(largest_error, c.relative_error());
      if (!c.equal)
        return Error{Reason::internal, "The output '" + infos[o].name + "' differs from ONNX Runtime's " + when + ": " +
                                           c.problem + " (" + criterion.text(expected[o].dtype) +
                                           "); 'sparkle compare' names the first layer that departs."};
    }
    return ok();
  }

  // A run that nobody times, for what the other left in the caches and for its threads to come to rest; then runs for the
  // round's time, one at least. The median of theirs.
  template <class Run>
  Result<double> turn(Run run, double seconds, std::vector<double>& all) {
    SPARKLE_CHECK(run());
    std::vector<double> times;
    const auto begin = Clock::now();
    do {
      const auto start = Clock::now();
      SPARKLE_CHECK(run());
      times.push_back(ms_since(start));
    } while (ms_since(begin) < 1e3 * seconds);
    all.insert(all.end(), times.begin(), times.end());
    return median(times);
  }
  Status round(bool ours_first, double seconds) {
    double a = 0, b = 0;
    for (const bool us : {ours_first, !ours_first}) {
      SPARKLE_TRY(taken, us ? turn([&] { return run_ours(); }, seconds, ours_ms)
                            : turn([&] { return run_theirs(); }, seconds, theirs_ms));
      (us ? a : b) = taken;
    }
    ratios.push_back(a > 0 ? b / a : 0);
    return ok();
  }
};

Result<HeadToHeadModels> opened(const CommonOptions& common, const ModelBench& bench,
                                const std::shared_ptr<OnnxRuntime>& runtime) {
  HeadToHeadModels c;
  SPARKLE_TRY(loaded, load_model(common, {bench.model, bench.inputs, bench.shapes}, Roofs::kept_or_estimated));
  c.ours = std::move(loaded);
  Session& session = *c.ours.session;
  SPARKLE_TRY(theirs, RuntimeModel::open(runtime, bench.model, names_of(session.inputs()), names_of(session.outputs())));
  c.theirs = std::move(theirs);
  SPARKLE_CHECK(c.theirs->give(c.ours.inputs));
  SPARKLE_TRY(plan, session.prepare(c.ours.inputs));
  SPARKLE_CHECK(check_fallback(*plan, common));
  c.open_sizes = !plan->open.empty();
  SPARKLE_TRY(outputs, session.run(c.ours.inputs));
  c.outputs = std::move(outputs);
  SPARKLE_CHECK(c.theirs->run(false));
  return c;
}

nlohmann::json times_json(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  return {{"runs", ms.size()},
          {"min_ms", percentile(ms, 0)},
          {"p50_ms", percentile(ms, 50)},
          {"p90_ms", percentile(ms, 90)},
          {"p99_ms", percentile(ms, 99)}};
}

void print_times(const char* name, const nlohmann::json& t) {
  std::printf("%-12s p50 %.3f ms, p90 %.3f, p99 %.3f; min %.3f; %d runs\n", name, t["p50_ms"].get<double>(),
              t["p90_ms"].get<double>(), t["p99_ms"].get<double>(), t["min_ms"].get<double>(), t["runs"].get<int>());
}

}  // namespace

int bench_beside(CommonOptions common, const ModelBench& bench, const LayerBenchOptions& rounds) {
  auto file = onnxruntime_file(bench.against);
  if (!file.ok()) return fail(file.error());
  // Before any thread exists: all of them, whoever starts them, stay on these CPUs and flush denormals.
  common.threads = usable_threads(common.threads).threads;
  pin_process(common.threads);
  const ScopedFlushDenormals flush;
  auto runtime = OnnxRuntime::open(*file, common.threads);
  if (!runtime.ok()) return fail(runtime.error());
  auto graph = read_onnx_model(bench.model, ExternalData::mapped);
  if (!graph.ok()) return fail(graph.error());
  const Criterion criterion = criterion_for(*graph);
  auto both = opened(common, bench, *runtime);
  if (!both.ok()) return fail(both.error(), common);
  if (auto same = both->compare(criterion, "before they were timed"); !same.ok()) return fail(same.error());
  const auto begin = Clock::now();
  const auto goes_on = [&](int round) {
    return bench.duration > 0 ? round < 2 || (round < 100000 && ms_since(begin) < 1e3 * bench.duration) : round < rounds.rounds;
  };
  int round = 0;
  for (; goes_on(round); ++round)
    if (auto done = both->round(round % 2 == 0, rounds.seconds_per_round); !done.ok()) return fail(done.error());
  if (auto same = both->compare(criterion, "in the last timed run"); !same.ok()) return fail(same.error());

  const nlohmann::json ours = times_json(both->ours_ms), theirs = times_json(both->theirs_ms);
  const double speedup = median(both->ratios);
  std::string by;
  for (const HostTensor& t : both->outputs)
    if (const std::string text = criterion.text(t.dtype); by.find(text) == std::string::npos)
      by += (by.empty() ? "" : "; ") + text;
  const std::string checked = "all outputs before and in the last run, largest difference " +
                              nlohmann::json(both->largest_error).dump() + " of the largest value; " + by;
  const nlohmann::json json{{"device", nlohmann::json::parse(device_to_json(both->ours.device.backend->device()))},
                            {"model", printable(bench.model)},
                            {"file", bench.model},
                            {"threads", common.threads},
                            {"rounds", round},
                            {"versions", {{"onnxruntime", (*runtime)->version()}}},
                            {"sparkle", ours},
                            {"onnxruntime", theirs},
                            {"speedup", speedup},
                            {"largest_difference", both->largest_error},
                            {"criterion", by}};
  if (!bench.output.empty())
    if (auto written = write_results(bench.output, json); !written.ok()) return fail(written.error());
  if (common.json) {
    std::printf("%s\n", certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kDone;
  }
  std::printf("%s, pinned; '%s' in turns with ONNX Runtime %s on the CPU with %d threads\n", both->ours.device.note.c_str(),
              printable(bench.model).c_str(), printable((*runtime)->version()).c_str(), common.threads);
  print_times("sparkle", ours);
  print_times("onnxruntime", theirs);
  std::printf("speed-up     %.3f: ONNX Runtime's time over Sparkle's, median of %d rounds\n", speedup, round);
  std::printf("compared     %s\n", checked.c_str());
  return kDone;
}

}  // namespace sparkle::cli
