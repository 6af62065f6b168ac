#include "measure/tune_layers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>

#include "base/system/out_of_memory.h"
#include "measure/layer_bench.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 5> kStates = {"tuned", "known", "single", "type_not_served", "no_time"};
// A sample is the median of runs that take about this long together, behind one run that brings operands into the caches.
constexpr double kSampleSeconds = 0.002;
constexpr int kMostRuns = 200;
constexpr int64_t kProbeEvery = 32;  // samples

using Clock = std::chrono::steady_clock;

// Candidates are prepared when they are first asked for and given up when they are dropped.
class LayerClock final : public TuneClock {
 public:
  LayerClock(Backend& backend, const Anchor& anchor, const std::vector<Choice>& candidates, const TuneOptions& options)
      : backend_(backend),
        anchor_(anchor),
        candidates_(candidates),
        layers_(candidates.size()),
        probes_(backend, peak_unit(candidates[0], backend.device()), compulsory_bytes(anchor.call, candidates[0])) {
    options_.plan = options.plan;
    options_.seed = options.seed;
    options_.constant_weights = anchor.constant_weights;
    deadline_ = options.deadline;
  }
  RoofProbes& probes() { return probes_; }

  Result<double> seconds(size_t candidate) override {
    std::unique_ptr<PreparedLayer>& layer = layers_[candidate];
    if (wrong_.contains(candidate)) return Error{Reason::failed_probe, "This candidate's output was wrong."};
    if (layer) return sample(*layer);
    auto begin = Clock::now();
    SPARKLE_TRY(made, PreparedLayer::make(backend_, anchor_.call, candidates_[candidate], options_));
    layer = std::move(made);
    SPARKLE_CHECK(check(candidate));
    preparing_ += Clock::now() - begin;
    SPARKLE_TRY(seconds, sample(*layer));
    // Once more: what is right on its first run alone must not set the time that others are dropped by.
    begin = Clock::now();
    SPARKLE_CHECK(check(candidate));
    preparing_ += Clock::now() - begin;
    return seconds;
  }
  void drop(size_t candidate) override { layers_[candidate].reset(); }
  // The whole output of a candidate, wiped before, on other operands than last time. One that computes something else is out,
  // however fast it is: drivers compile some schedules wrongly. Errors: failed_probe where it is wrong.
  Status check(size_t candidate) {
    if (!layers_[candidate]) {
      SPARKLE_TRY(made, PreparedLayer::make(backend_, anchor_.call, candidates_[candidate], options_));
      layers_[candidate] = std::move(made);
    }
    PreparedLayer& layer = *layers_[candidate];
    SPARKLE_TRY(next, next_check());
    const Status right = check_once(layer, *next, candidates_[candidate], options_, checked_);
    if (!right.ok()) {
      if (right.error().reason != Reason::internal) return right;
      wrong_[candidate] = right.error().message;
      layers_[candidate].reset();
      return Error{Reason::failed_probe, right.error().message};
    }
    SPARKLE_TRY(timed, timed_operands());
    return layer.take(timed);
  }
  const std::map<size_t, std::string>& wrong() const { return wrong_; }
  const Checked& checked() const { return checked_; }
  void begin_again() { begin_ = Clock::now(), preparing_ = {}; }
  // Without what drivers took to compile: that says nothing, and takes as long for bad schedules as for good ones.
  double spent() const override {
    const auto now = Clock::now();
    return now > deadline_ ? HUGE_VAL : std::chrono::duration<double>(now - begin_ - preparing_).count();
  }

 private:
  Result<double> sample(PreparedLayer& layer) {
    if (samples_++ % kProbeEvery == kProbeEvery / 2) {
      const auto begin = Clock::now();
      probes_.take();
      preparing_ += Clock::now() - begin;
    }
    SPARKLE_TRY(first, layer.sample());
    const double each = std::max(first, 1e-7) * layer.runs_of_sample();
    const int runs = std::clamp(static_cast<int>(kSampleSeconds / each), 1, kMostRuns);
    std::vector<double> times;
    for (int i = 0; i < runs; ++i) {
      SPARKLE_TRY(seconds, layer.sample());
      times.push_back(seconds);
    }
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return times[static_cast<size_t>(runs / 2)];
  }
  // Candidates share their operands, two sets in turns, each with the sums that are right for it.
  Result<const LayerCheck*> next_check() {
    std::unique_ptr<LayerCheck>& check = checks_[turn_++ % 2];
    if (!check) {
      const uint64_t seed = next_seed(options_.seed, anchor_.call.problem);
      SPARKLE_TRY(made, LayerCheck::make(anchor_.call, seed, seed, backend_.executor()));
      check = std::move(made);
    }
    return static_cast<const LayerCheck*>(check.get());
  }
  Result<std::vector<HostTensor>> timed_operands() {
    if (timed_.empty()) {
      SPARKLE_TRY(made, random_operands(anchor_.call, next_seed(options_.seed, anchor_.call.problem)));
      timed_ = std::move(made);
    }
    return timed_;
  }

  Backend& backend_;
  const Anchor& anchor_;
  const std::vector<Choice>& candidates_;
  LayerBenchOptions options_;
  std::vector<std::unique_ptr<PreparedLayer>> layers_;
  std::unique_ptr<LayerCheck> checks_[2];
  size_t turn_ = 0;
  std::vector<HostTensor> timed_;
  std::map<size_t, std::string> wrong_;
  Checked checked_;
  RoofProbes probes_;
  int64_t samples_ = 0;
  Clock::time_point begin_ = Clock::now(), deadline_;
  Clock::duration preparing_{};
};

bool all_f32(const AnchorCall& call) {
  return call.output.dtype == DType::f32 &&
         std::all_of(call.inputs.begin(), call.inputs.end(), [](const TensorDesc& d) { return d.dtype == DType::f32; });
}

// A time that no candidate can have chooses nothing.
RoofVerdict verdict_of(const Choice& candidate, double seconds, const AnchorCall& call, const Backend& backend,
                       const RoofProbes& probes) {
  double counted = 0;
  for (const Footprint& f : candidate.footprints) counted += f.executed_flops;
  const bool same_unit = peak_unit(candidate, backend.device()) == probes.unit();
  const double flops = same_unit ? std::min(executed_flops(call.problem), counted) : 0;
  return probes.judge({seconds, flops, compulsory_bytes(call, candidate), 0, backend.keeps_time()});
}

Result<TuneResult> tuned(Backend& backend, const Anchor& anchor, const TuneOptions& options, TuningStore& store) {
  TuneResult result{anchor, TuneState::tuned, {}, {}, {}, {}, {}, {}};
  const auto as = [&](TuneState state) {
    result.state = state;
    return std::move(result);
  };
  if (!all_f32(anchor.call)) return as(TuneState::type_not_served);
  const std::string key = tuning_key(anchor.call, options.plan);
  if (!options.again && store.find(key)) return as(TuneState::known);
  const auto begin = Clock::now();
  SPARKLE_TRY(found, candidates_of_layer(backend, anchor.call, options.plan));
  result.candidates = std::move(found);
  result.trying = Clock::now() - begin;
  if (result.candidates.size() < 2) return as(TuneState::single);
  std::vector<double> errors;
  for (const Choice& candidate : result.candidates) errors.push_back(candidate.error);
  TuneOptions limits = options;
  if (limits.deadline != Clock::time_point::max()) limits.deadline += result.trying;
  LayerClock clock(backend, anchor, result.candidates, limits);
  RoofProbes& probes = clock.probes();
  probes.take();
  for (bool right = false; !right;) {
    SPARKLE_TRY(verdict, tune(errors, clock, options.rule));
    result.verdict = std::move(verdict);
    if (result.verdict.outcome == TuneOutcome::out_of_time) break;
    const Status last = clock.check(result.verdict.chosen);
    if (!last.ok() && last.error().reason != Reason::failed_probe) return Error(last.error());
    right = last.ok();
    if (!right) clock.begin_again();  // what it was faster than deserves another look
  }
  for (const auto& [candidate, sentence] : clock.wrong()) result.wrong.push_back(sentence);
  result.checked = clock.checked();
  if (result.wrong.size() == result.candidates.size())
    return Error{Reason::internal, "Each of the " + std::to_string(result.candidates.size()) +
                                       " candidates for this layer is wrong. " + result.wrong.front()};
  if (result.verdict.outcome == TuneOutcome::out_of_time) return as(TuneState::no_time);
  probes.take();
  for (size_t i = 0; i < result.candidates.size(); ++i) {
    const RoofVerdict verdict = verdict_of(result.candidates[i], result.verdict.seconds[i], anchor.call, backend, probes);
    const std::string above =
        verdict.error_text(short_name(anchor.call.problem) + " by " + to_text(result.candidates[i].schedules[0]));
    if (!above.empty()) return Error{Reason::internal, above};
    if (i == result.verdict.chosen) result.roofs = verdict;
  }
  store.put(key, {result.after().algorithm, to_text(result.after().schedules.front())});
  return result;
}

}  // namespace

std::string_view name_of(TuneState state) { return kStates[static_cast<size_t>(state)]; }

Anchor anchor_of(const std::string& name, const Problem& problem, const Device& device) {
  return {name.empty() ? short_name(problem) : name, call_of(problem, device), 1, true};
}

Result<TuneResult> tune_anchor(Backend& backend, const Anchor& anchor, const TuneOptions& options, TuningStore& store) {
  return guard_memory("Tuning this layer", [&] { return tuned(backend, anchor, options, store); });
}

}  // namespace sparkle
