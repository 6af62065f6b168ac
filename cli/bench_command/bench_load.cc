#include "bench_command/bench_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/median.h"
#include "base/printable.h"
#include "bench_command/certificate.h"
#include "device/device_json.h"
#include "run/wipe.h"

namespace sparkle::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSeconds = 3;          // without --duration
constexpr size_t kMostTimes = 1000000;  // kept of a stream; what comes after counts in the throughput alone

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// One request after another until the time is over.
struct Stream {
  std::vector<double> ms;
  int64_t runs = 0;
  std::vector<HostTensor> outputs;
  std::optional<Error> error;

  void go(const LoadedModel& loaded, const std::atomic<bool>& over, std::atomic<bool>& failed) {
    while (!over) {
      const auto begin = Clock::now();
      auto made = loaded.session->run(loaded.inputs);
      const double taken = 1e3 * seconds_since(begin);
      if (!made.ok()) {
        error = made.error();
        failed = true;
        return;
      }
      outputs = std::move(*made);
      ++runs;
      if (ms.size() < kMostTimes) ms.push_back(taken);
    }
  }
};

struct Load {
  std::vector<double> ms;  // of all requests, ascending
  int64_t runs = 0;
  double seconds = 0;
};

Result<Load> measured(const LoadedModel& loaded, int streams, double duration, ModelCheck& check) {
  std::vector<Stream> all(static_cast<size_t>(streams));
  std::atomic<bool> over = false, failed = false;
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (Stream& s : all) threads.emplace_back([&] { s.go(loaded, over, failed); });
    while (seconds_since(begin) < duration && !failed)
      std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(duration - seconds_since(begin), 0.0, 0.1)));
    over = true;
  }
  Load load;
  load.seconds = seconds_since(begin);
  for (Stream& s : all) {
    if (s.error) return *s.error;
    load.runs += s.runs;
    load.ms.insert(load.ms.end(), s.ms.begin(), s.ms.end());
    if (check.possible() && !s.outputs.empty()) SPARKLE_CHECK(check.accept(s.outputs, "in the last run of a stream"));
  }
  std::sort(load.ms.begin(), load.ms.end());
  return load;
}

}  // namespace

int bench_load(const CommonOptions& common, const ModelBench& bench) {
  auto loaded = load_model(common, {bench.model, bench.inputs, bench.shapes}, Roofs::kept_or_estimated);
  if (!loaded.ok()) return fail(loaded.error(), common);
  auto check = check_of(common, bench, *loaded);
  if (!check.ok()) return fail(check.error(), common);
  auto plan = loaded->session->prepare(loaded->inputs);
  if (!plan.ok()) return fail(plan.error(), common);
  if (auto fast = check_fallback(**plan, common); !fast.ok()) return fail(fast.error(), common);
  auto first = loaded->session->run_wiped(loaded->inputs, kWipedToNan);
  if (!first.ok()) return fail(first.error(), common);
  if (check->possible())
    if (auto right = check->accept(*first, "before it was timed"); !right.ok()) return fail(right.error());
  if (!common.json) {
    std::printf("%s; '%s'\n", loaded->device.note.c_str(), printable((*plan)->model).c_str());
    std::fflush(stdout);
  }
  auto load = measured(*loaded, bench.streams, bench.duration > 0 ? bench.duration : kSeconds, *check);
  if (!load.ok()) return fail(load.error(), common);
  const int threads = loaded->device.backend->executor().width();
  const double rate = static_cast<double>(load->runs) / load->seconds;
  const auto at = [&](double percent) { return percentile(load->ms, percent); };
  const nlohmann::json json{
      {"device", nlohmann::json::parse(device_to_json(loaded->device.backend->device()))},
      {"model", (*plan)->model},
      {"file", bench.model},
      {"streams", bench.streams},
      {"threads", threads},
      {"seconds", load->seconds},
      {"runs", load->runs},
      {"runs_per_second", rate},
      {"latency", {{"min_ms", at(0)}, {"p50_ms", at(50)}, {"p90_ms", at(90)}, {"p99_ms", at(99)}, {"max_ms", at(100)}}},
      {"checked", check->text()}};
  if (!bench.output.empty())
    if (auto written = write_results(bench.output, json); !written.ok()) return fail(written.error());
  if (common.json) {
    std::printf("%s\n", certified(json).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kDone;
  }
  std::printf("%d streams on %d threads: %lld runs in %.2f s, %.1f a second\n", bench.streams, threads,
              static_cast<long long>(load->runs), load->seconds, rate);
  std::printf("latency of a run: p50 %.3f ms, p90 %.3f, p99 %.3f; min %.3f, max %.3f\n", at(50), at(90), at(99), at(0),
              at(100));
  std::printf("outputs checked before and in the last run of each stream: %s\n", check->text().c_str());
  return kDone;
}

}  // namespace sparkle::cli
