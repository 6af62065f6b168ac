#include "measure/head_to_head.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "base/system/denormals.h"
#include "base/median.h"
#include "base/system/out_of_memory.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;

// A sample is as many calls as take this long: single calls of a few microseconds drown in the clock's own cost.
constexpr double kSampleSeconds = 0.5e-3;
// Threads that slept may wake on one core; some ms later the system has parted them.
constexpr double kSettleSeconds = 20e-3;
// Other engines' idle threads spin for a while before they sleep: 1 ms and more was seen.
constexpr std::chrono::milliseconds kPause{2};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class OurRun final : public PeerRun {
 public:
  OurRun(PreparedLayer& layer, bool clock_of_device) : layer_(layer), clock_of_device_(clock_of_device) {}
  Status run(int64_t calls) override {
    for (int64_t i = 0; i < calls; ++i) {
      auto seconds = layer_.run();
      if (!seconds.ok()) return seconds.take_error();
    }
    return ok();
  }
  Result<double> seconds(int64_t calls) override {
    if (!clock_of_device_) return PeerRun::seconds(calls);
    double sum = 0;
    int64_t samples = 0;
    for (int64_t done = 0; done < calls; done += layer_.runs_of_sample(), ++samples) {
      SPARKLE_TRY(one, layer_.sample());
      sum += one;
    }
    return sum / static_cast<double>(samples);
  }
  Status result(float*) override { return ok(); }

 private:
  PreparedLayer& layer_;
  bool clock_of_device_;
};

struct Competitor {
  Competitor(PeerRun* r, RoofProbes p) : run(r), probes(std::move(p)) {}
  PeerRun* run;
  RoofProbes probes;                                   // just before and after its repetitions
  int64_t calls = 1;                                   // per sample
  std::vector<double> samples, fixed, shares, ratios;  // ratios: its time over the first competitor's, one a round
  double repetition = 0;                               // median of the latest repetition
};

Status calibrate(Competitor& c) {
  SPARKLE_CHECK(c.run->run(1));
  const auto begin = Clock::now();
  SPARKLE_CHECK(c.run->run(1));
  c.calls = std::clamp<int64_t>(static_cast<int64_t>(kSampleSeconds / std::max(seconds_since(begin), 1e-7)), 1, 100000);
  return ok();
}

// `least`: what the layer's products take at the peak; a sample is not made shorter than that by taking a fixed cost off, which
// varies with the work around it.
Status repetition(Competitor& c, double seconds, double settle, double least) {
  SPARKLE_TRY(fixed, c.run->fixed_seconds(c.calls));
  auto start = Clock::now();
  do {
    SPARKLE_CHECK(c.run->run(1));  // what the others pushed out of the caches comes back
  } while (seconds_since(start) < settle);
  std::vector<double> samples;
  start = Clock::now();
  do {
    SPARKLE_TRY(taken, c.run->seconds(c.calls));
    samples.push_back(std::max(taken - fixed, std::min(taken, std::max(least, taken / 10))));
  } while (seconds_since(start) < seconds);
  c.fixed.push_back(fixed);
  c.repetition = median(samples);
  c.samples.insert(c.samples.end(), samples.begin(), samples.end());
  return ok();
}

// All rounds, each beginning with another competitor.
Status play(Backend& backend, double flops, const LayerBenchOptions& options, std::vector<Competitor>& competitors) {
  for (Competitor& c : competitors) SPARKLE_CHECK(calibrate(c));
  const size_t count = competitors.size();
  for (int round = 0; round < options.rounds; ++round) {
    std::this_thread::sleep_for(kPause);
    for (size_t turn = 0; turn < count; ++turn) {
      Competitor& c = competitors[(turn + static_cast<size_t>(round)) % count];
      const double before = c.probes.take();
      const bool fewer_products = c.run->chose().find("wino") != std::string::npos;
      const double least = before > 0 && !fewer_products ? flops / before : 0;
      SPARKLE_CHECK(repetition(c, options.seconds_per_round, backend.device().cores > 1 ? kSettleSeconds : 0, least));
      std::this_thread::sleep_for(kPause);
      const double peak = (before + c.probes.take()) / 2;
      if (peak > 0) c.shares.push_back(flops / c.repetition / peak);
    }
    for (Competitor& c : competitors) c.ratios.push_back(c.repetition / competitors[0].repetition);
  }
  return ok();
}

template <class Measurement>
void set_times(const Competitor& c, Measurement& m) {
  const Spread s = spread_of(c.samples);
  m.median_seconds = s.median, m.min_seconds = s.min, m.p95_seconds = s.p95;
  m.share_of_peak = median(c.shares);
}

PeerLayer given_to_peer(const AnchorCall& call, const std::vector<HostTensor>& operands, const LayerBenchOptions& options) {
  const auto operand = [&](size_t i) { return reinterpret_cast<const float*>(operands[i].bytes.get()); };
  return {call, operand(0), operand(1), call.problem.epilogue.bias ? operand(2) : nullptr, options.constant_weights};
}

// One of Sparkle's own candidates, checked.
struct Own {
  CheckedLayer layer;
  std::unique_ptr<OurRun> run;
};
Result<Own> prepare_own(Backend& backend, const AnchorCall& call, const LayerBenchOptions& options, LayerMeasurement& m) {
  SPARKLE_TRY(layer, CheckedLayer::make(backend, call, m.choice, options));
  Own own{std::move(layer), nullptr};
  own.run = std::make_unique<OurRun>(own.layer.layer(), backend.keeps_time());
  m.problem = call.problem;
  return own;
}

// A peer's whole output on operands of its own: what it was given before or will be given later tells it nothing.
Status check_peer(Peer& peer, Backend& backend, const AnchorCall& call, const LayerBenchOptions& options, PeerMeasurement& p) {
  const uint64_t seed = next_seed(options.seed, call.problem);
  SPARKLE_TRY(check, LayerCheck::make(call, seed, seed, backend.executor()));
  SPARKLE_TRY(run, peer.prepare(given_to_peer(call, check->inputs(), options)));
  std::vector<float> y(static_cast<size_t>(call.output.elements()), std::numeric_limits<float>::quiet_NaN());
  SPARKLE_CHECK(run->run(1));
  SPARKLE_CHECK(run->result(y.data()));
  // Which algorithm it took is its own matter.
  return check->accept(y.data(), std::max(options.plan.accuracy, PlanOptions{}.accuracy), p.name, p.checked);
}

// The same on the operands that were timed, after the last timed run.
Status check_timed(PeerRun& run, const AnchorCall& call, const SliceCheck& slice, const LayerBenchOptions& options,
                   PeerMeasurement& p) {
  std::vector<float> y(static_cast<size_t>(call.output.elements()), std::numeric_limits<float>::quiet_NaN());
  SPARKLE_CHECK(run.result(y.data()));
  SPARKLE_CHECK(all_written(call, y.data(), p.name));
  p.largest_error = slice.error_of(y.data());
  return accept_error(p.largest_error, call.problem, p.name, options, 0);
}

Status finish_own(const Backend& backend, const Competitor& c, const RoofProbes& probes, CheckedLayer& own,
                  LayerMeasurement& m) {
  m.repeats = own.layer().repeats();
  SPARKLE_CHECK(own.finish(m));
  set_times(c, m);
  m.clock_of_device = backend.keeps_time();
  find_roof(probes, backend.device(), m);
  return ok();
}

Result<HeadToHead> measure(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                           std::span<const std::unique_ptr<Peer>> peers) {
  // As Sparkle's own kernels run; threads that a peer starts from here on inherit it.
  const ScopedFlushDenormals flush;
  if (problem.dtype != "f32")
    return Error{Reason::type_not_served,
                 "Other engines are measured in f32; '" + problem.dtype + "' has no head-to-head benchmark."};
  HeadToHead result;
  LayerMeasurement& m = result.ours;
  SPARKLE_TRY(choice, choose_layer(backend, problem, options));
  m.choice = std::move(choice);
  const AnchorCall call = call_of(problem, backend.device());
  SPARKLE_TRY(own, prepare_own(backend, call, options, m));
  const std::vector<HostTensor> timed = own.layer.layer().inputs();
  const PeerLayer given = given_to_peer(call, timed, options);
  std::vector<std::unique_ptr<PeerRun>> runs;
  const double bytes = compulsory_bytes(call, m.choice);
  const RoofProbes probes(backend, peak_unit(m.choice, backend.device()), bytes);
  std::vector<Competitor> competitors{Competitor(own.run.get(), probes)};
  std::vector<size_t> who;  // competitor 1 + i is this peer
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
    SPARKLE_CHECK(check_peer(*peers[i], backend, call, options, p));
    competitors.emplace_back(run->get(), probes);
    runs.push_back(std::move(*run));
    who.push_back(i);
  }
  SPARKLE_CHECK(play(backend, problem.nominal_flops(), options, competitors));
  const SliceCheck slice(call, timed, next_seed(options.seed, call.problem));
  SPARKLE_CHECK(finish_own(backend, competitors[0], competitors[0].probes, own.layer, m));
  for (size_t i = 1; i < competitors.size(); ++i) {
    PeerMeasurement& p = result.peers[who[i - 1]];
    SPARKLE_CHECK(check_timed(*competitors[i].run, call, slice, options, p));
    SPARKLE_CHECK(check_peer(*peers[who[i - 1]], backend, call, options, p));
    set_times(competitors[i], p);
    // How many operations its algorithm executes is not known; the bytes are the same for all.
    p.verdict = competitors[i].probes.judge({p.median_seconds, 0, bytes, 0, false});
    p.fixed_seconds = median(competitors[i].fixed);
    if (p.fixed_seconds > p.median_seconds) {
      p.refused = "Its fixed cost of a call is more than the layer's, which is not resolved.";
      continue;
    }
    p.speedup = median(competitors[i].ratios);
    result.best_speedup = result.best_speedup > 0 ? std::min(result.best_speedup, p.speedup) : p.speedup;
  }
  return result;
}

Result<std::vector<CandidateMeasurement>> measure(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                                                  std::vector<ComparedChoice> candidates) {
  const AnchorCall call = call_of(problem, backend.device());
  std::vector<CandidateMeasurement> result;
  std::vector<Own> owns;
  std::vector<Competitor> competitors;
  if (candidates.empty()) return result;
  const RoofProbes probes(backend, peak_unit(candidates[0].choice, backend.device()),
                          compulsory_bytes(call, candidates[0].choice));
  for (ComparedChoice& candidate : candidates) {
    CandidateMeasurement& w = result.emplace_back();
    w.measured.choice = std::move(candidate.choice);
    const AnchorCall own_call = candidate.planes ? call_of(problem, backend.device(), true) : call;
    SPARKLE_TRY(own, prepare_own(backend, own_call, options, w.measured));
    competitors.emplace_back(own.run.get(), probes);
    owns.push_back(std::move(own));
  }
  SPARKLE_CHECK(play(backend, problem.nominal_flops(), options, competitors));
  // They took turns: one peak for all, so that their shares of it compare.
  RoofProbes all = probes;
  for (const Competitor& c : competitors) all.add(c.probes);
  for (size_t i = 0; i < result.size(); ++i) {
    SPARKLE_CHECK(finish_own(backend, competitors[i], all, owns[i].layer, result[i].measured));
    result[i].times_first = median(competitors[i].ratios);
  }
  return result;
}

}  // namespace

Result<double> PeerRun::seconds(int64_t calls) {
  const auto begin = Clock::now();
  SPARKLE_CHECK(run(calls));
  return seconds_since(begin) / static_cast<double>(calls);
}

Result<HeadToHead> head_to_head(Backend& backend, const Problem& problem, const LayerBenchOptions& options,
                                std::span<const std::unique_ptr<Peer>> peers) {
  return guard_memory("Measuring this layer", [&] { return measure(backend, problem, options, peers); });
}

Result<std::vector<CandidateMeasurement>> compare_candidates(Backend& backend, const Problem& problem,
                                                             const LayerBenchOptions& options,
                                                             std::vector<ComparedChoice> candidates) {
  return guard_memory("Measuring this layer", [&] { return measure(backend, problem, options, std::move(candidates)); });
}

}  // namespace sparkle
