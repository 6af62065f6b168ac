#include "run/tune_layers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/out_of_memory.h"
#include "run/layer_bench.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 5> kStates = {"tuned", "known", "single", "type_not_served", "no_time"};
// A sample is the median of runs that take about this long together, behind one run that brings operands into the caches.
constexpr double kSampleSeconds = 0.002;
constexpr int kMostRuns = 200;

using Clock = std::chrono::steady_clock;

// Ways are prepared when they are first asked for and given up when they are dropped.
class LayerClock final : public TuneClock {
 public:
  LayerClock(Backend& backend, const Anchor& anchor, const std::vector<Choice>& ways, const TuneOptions& options)
      : backend_(backend), anchor_(anchor), ways_(ways), layers_(ways.size()) {
    options_.plan = options.plan;
    options_.seed = options.seed;
    options_.constant_weights = anchor.constant_weights;
    deadline_ = options.deadline;
  }

  Result<double> seconds(size_t way) override {
    std::unique_ptr<PreparedLayer>& layer = layers_[way];
    if (!layer) {
      const auto begin = Clock::now();
      SPARKLE_TRY(made, PreparedLayer::make(backend_, anchor_.call, ways_[way], options_));
      const Status right = verify(*made, ways_[way]);
      preparing_ += Clock::now() - begin;
      SPARKLE_CHECK(right);
      layer = std::move(made);
    }
    SPARKLE_TRY(first, layer->run());
    const int runs = std::clamp(static_cast<int>(kSampleSeconds / std::max(first, 1e-7)), 1, kMostRuns);
    std::vector<double> times;
    for (int i = 0; i < runs; ++i) {
      SPARKLE_TRY(seconds, layer->run());
      times.push_back(seconds);
    }
    std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
    return times[static_cast<size_t>(runs / 2)];
  }
  void drop(size_t way) override { layers_[way].reset(); }
  // Without what drivers took to compile: that says nothing, and takes as long for bad schedules as for good ones.
  double spent() const override {
    const auto now = Clock::now();
    return now > deadline_ ? HUGE_VAL : std::chrono::duration<double>(now - begin_ - preparing_).count();
  }

 private:
  // A way that computes something else is out, however fast it is: drivers compile some schedules wrongly.
  Status verify(PreparedLayer& layer, const Choice& way) {
    if (!check_) check_ = std::make_unique<LayerCheck>(anchor_.call, layer.inputs(), options_.seed);
    if (!check_->possible()) return ok();
    SPARKLE_TRY(seconds, layer.run());
    (void)seconds;
    SPARKLE_TRY(output, layer.output());
    const Problem& problem = anchor_.call.problem;
    if (accept_error(check_->error_of(output), problem, "", options_, way.error + check_->rounding()).ok()) return ok();
    return Error{Reason::failed_probe,
                 "The kernel " + to_text(way.schedules[0]) + " computes " + short_name(problem) + " wrongly."};
  }

  Backend& backend_;
  const Anchor& anchor_;
  const std::vector<Choice>& ways_;
  LayerBenchOptions options_;
  std::vector<std::unique_ptr<PreparedLayer>> layers_;
  std::unique_ptr<LayerCheck> check_;
  Clock::time_point begin_ = Clock::now(), deadline_;
  Clock::duration preparing_{};
};

bool all_f32(const AnchorCall& call) {
  return call.output.dtype == DType::f32 &&
         std::all_of(call.inputs.begin(), call.inputs.end(), [](const TensorDesc& d) { return d.dtype == DType::f32; });
}

Result<TuneResult> tuned(Backend& backend, const Anchor& anchor, const TuneOptions& options, TuningStore& store) {
  TuneResult result{anchor, TuneState::tuned, {}, {}};
  const auto as = [&](TuneState state) {
    result.state = state;
    return std::move(result);
  };
  if (!all_f32(anchor.call)) return as(TuneState::type_not_served);
  const std::string key = tuning_key(anchor.call, options.plan);
  if (!options.again && store.find(key)) return as(TuneState::known);
  SPARKLE_TRY(found, ways(anchor.call, backend.device(), options.plan));
  result.ways = std::move(found);
  if (result.ways.size() < 2) return as(TuneState::single);
  std::vector<double> errors;
  for (const Choice& way : result.ways) errors.push_back(way.error);
  LayerClock clock(backend, anchor, result.ways, options);
  SPARKLE_TRY(verdict, tune(errors, clock, options.rule));
  result.verdict = std::move(verdict);
  if (result.verdict.outcome == TuneOutcome::out_of_time) return as(TuneState::no_time);
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
