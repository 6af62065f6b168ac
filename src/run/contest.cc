#include "run/contest.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "base/denormals.h"
#include "base/out_of_memory.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;

// A sample is as many calls as take this long: single calls of a few microseconds drown in the clock's own cost.
constexpr double kSampleSeconds = 0.5e-3;
// Other engines' idle threads spin for a while before they sleep: 1 ms and more was seen.
constexpr std::chrono::milliseconds kPause{2};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class OurRun final : public PeerRun {
 public:
  explicit OurRun(PreparedLayer& layer) : layer_(layer) {}
  Status run(int64_t calls) override {
    for (int64_t i = 0; i < calls; ++i) SPARKLE_TRY(seconds, layer_.run());
    return ok();
  }
  Status result(float*) override { return ok(); }

 private:
  PreparedLayer& layer_;
};

struct Contestant {
  PeerRun* run = nullptr;
  int64_t calls = 1;  // per sample
  std::vector<double> samples, fixed, shares;
  double visit = 0;  // median of the latest visit
};

Status calibrate(Contestant& c) {
  SPARKLE_CHECK(c.run->run(1));
  const auto begin = Clock::now();
  SPARKLE_CHECK(c.run->run(1));
  c.calls = std::clamp<int64_t>(static_cast<int64_t>(kSampleSeconds / std::max(seconds_since(begin), 1e-7)), 1, 100000);
  return ok();
}

Status visit(Contestant& c, double seconds) {
  SPARKLE_TRY(fixed, c.run->fixed_seconds(c.calls));
  SPARKLE_CHECK(c.run->run(1));  // what the others pushed out of the caches comes back
  std::vector<double> samples;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    SPARKLE_CHECK(c.run->run(c.calls));
    const double taken = seconds_since(begin) / static_cast<double>(c.calls);
    samples.push_back(std::max(taken - fixed, taken / 10));
  } while (seconds_since(start) < seconds);
  c.fixed.push_back(fixed);
  c.visit = median(samples);
  c.samples.insert(c.samples.end(), samples.begin(), samples.end());
  return ok();
}

Result<ContestResult> measure(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                              std::span<const std::unique_ptr<Peer>> peers) {
  // As Sparkle's own kernels run; threads that a peer starts from here on inherit it.
  const ScopedFlushDenormals flush;
  ContestResult result;
  LayerMeasurement& m = result.ours;
  m.problem = problem;
  SPARKLE_TRY(choice, choose_layer(backend, problem, options));
  m.choice = std::move(choice);
  const AnchorCall call = call_of(problem);
  SPARKLE_TRY(layer, PreparedLayer::make(backend, call, m.choice, options));
  m.workspace_bytes = layer->workspace_bytes();
  const LayerCheck check(call, layer->inputs(), options.seed);
  SPARKLE_TRY(first, layer->run());
  SPARKLE_TRY(output, layer->output());
  m.largest_error = check.error_of(output);
  m.verified = true;
  SPARKLE_CHECK(accept_error(m.largest_error, problem, "The kernel " + to_text(m.choice.schedules[0]), options));

  const auto operand = [&](size_t i) { return reinterpret_cast<const float*>(layer->inputs()[i].bytes.get()); };
  const PeerLayer given{call, operand(0), operand(1), problem.epilogue.bias ? operand(2) : nullptr, options.constant_weights};
  OurRun ours(*layer);
  std::vector<std::unique_ptr<PeerRun>> runs;
  std::vector<Contestant> contestants(1);
  contestants[0].run = &ours;
  std::vector<size_t> who;  // contestant 1 + i is this peer
  std::vector<float> y(static_cast<size_t>(call.output.elements()));
  for (size_t i = 0; i < peers.size(); ++i) {
    PeerMeasurement& p = result.peers.emplace_back();
    p.name = peers[i]->name(), p.version = peers[i]->version();
    auto run = peers[i]->prepare(given);
    if (!run.ok()) {
      if (run.error().reason != Reason::operator_not_served) return run.take_error();
      p.refused = run.error().message;
      continue;
    }
    p.chose = (*run)->chose();
    std::fill(y.begin(), y.end(), std::numeric_limits<float>::quiet_NaN());
    SPARKLE_CHECK((*run)->run(1));
    SPARKLE_CHECK((*run)->result(y.data()));
    p.largest_error = check.error_of(y.data());
    SPARKLE_CHECK(accept_error(p.largest_error, problem, p.name, options));
    contestants.push_back({run->get()});
    runs.push_back(std::move(*run));
    who.push_back(i);
  }
  for (Contestant& c : contestants) SPARKLE_CHECK(calibrate(c));

  const std::string unit = unit_of(m.choice.schedules[0]);
  std::vector<double> peaks;
  std::vector<std::vector<double>> ratios(contestants.size());
  const size_t count = contestants.size();
  for (int round = 0; round < options.rounds; ++round) {
    std::this_thread::sleep_for(kPause);
    double before = backend.probe_peak(unit);
    for (size_t turn = 0; turn < count; ++turn) {
      Contestant& c = contestants[(turn + static_cast<size_t>(round)) % count];
      SPARKLE_CHECK(visit(c, options.seconds_per_round));
      std::this_thread::sleep_for(kPause);
      const double after = backend.probe_peak(unit), peak = (before + after) / 2;
      before = after;
      if (peak > 0) c.shares.push_back(problem.nominal_flops() / c.visit / peak);
      if (&c == contestants.data()) peaks.push_back(peak);
    }
    for (size_t i = 1; i < count; ++i) ratios[i].push_back(contestants[i].visit / contestants[0].visit);
  }
  for (Contestant& c : contestants) std::sort(c.samples.begin(), c.samples.end());
  const std::vector<double>& samples = contestants[0].samples;
  m.median_seconds = samples[samples.size() / 2];
  m.min_seconds = samples.front();
  m.p95_seconds = samples[samples.size() * 95 / 100];
  m.share_of_peak = median(contestants[0].shares);
  m.peak_flops_per_second = median(peaks);
  find_roof(backend.device(), m);
  for (size_t i = 1; i < count; ++i) {
    PeerMeasurement& p = result.peers[who[i - 1]];
    const std::vector<double>& s = contestants[i].samples;
    p.median_seconds = s[s.size() / 2], p.min_seconds = s.front(), p.p95_seconds = s[s.size() * 95 / 100];
    p.fixed_seconds = median(contestants[i].fixed);
    p.share_of_peak = median(contestants[i].shares);
    p.speedup = median(ratios[i]);
    result.best_speedup = i == 1 ? p.speedup : std::min(result.best_speedup, p.speedup);
  }
  return result;
}

}  // namespace

Result<ContestResult> contest(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                              std::span<const std::unique_ptr<Peer>> peers) {
  return guard_memory("Measuring this layer", [&] { return measure(backend, problem, options, peers); });
}

}  // namespace sparkle
