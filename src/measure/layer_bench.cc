#include "measure/layer_bench.h"

#include <algorithm>

#include "base/median.h"
#include "base/system/out_of_memory.h"
#include "families/common.h"
#include "families/gemm/stored_weights.h"
#include "plan/choose/forced.h"
#include "measure/choice_errors.h"

namespace sparkle {
namespace {

// About; `first`: of a run.
Result<double> seconds_of_sample(PreparedLayer& layer, double first) {
  if (!layer.takes_bursts()) return first;
  SPARKLE_TRY(seconds, layer.sample());
  return seconds * layer.runs_of_sample();
}

Result<LayerMeasurement> measure(Backend& backend, const Problem& problem, Choice choice, const LayerBenchOptions& options) {
  LayerMeasurement m;
  m.problem = problem;
  m.choice = std::move(choice);
  const AnchorCall call = call_of(problem, backend.device(), options.planes);
  SPARKLE_TRY(own, CheckedLayer::make(backend, call, m.choice, options));
  PreparedLayer* const layer = &own.layer();
  const double first = own.first_seconds();
  const std::string unit = peak_unit(m.choice, backend.device());
  RoofProbes probes(backend, unit, compulsory_bytes(call, m.choice));
  std::vector<double> samples, shares;
  m.clock_of_device = backend.keeps_time();
  SPARKLE_TRY(each, seconds_of_sample(*layer, first));
  const int repeats = std::clamp(static_cast<int>(options.seconds_per_round / std::max(each, 1e-7)), 1, 10000);
  for (int round = 0; round < options.rounds; ++round) {
    const double before = probes.take();
    if (first < options.seconds_per_round) {  // what the probes pushed out of the caches comes back
      SPARKLE_TRY(warm, layer->run());
      (void)warm;
    }
    std::vector<double> times;
    const Traffic traffic = backend.traffic();
    for (int i = 0; i < repeats; ++i) {
      SPARKLE_TRY(seconds, layer->sample());
      times.push_back(seconds);
    }
    m.host_transfers += backend.traffic().copies - traffic.copies + backend.traffic().host_transfers - traffic.host_transfers;
    const double peak = (before + probes.take()) / 2;
    samples.insert(samples.end(), times.begin(), times.end());
    if (peak > 0) shares.push_back(problem.nominal_flops() / median(times) / peak);
  }
  m.repeats = layer->repeats();
  SPARKLE_CHECK(own.finish(m));
  const Spread s = spread_of(std::move(samples));
  m.median_seconds = s.median, m.min_seconds = s.min, m.p95_seconds = s.p95;
  m.share_of_peak = median(shares);
  find_roof(probes, backend.device(), m);
  return m;
}

}  // namespace

Result<CheckedLayer> CheckedLayer::make(Backend& backend, const AnchorCall& call, const Choice& choice,
                                        const LayerBenchOptions& options) {
  CheckedLayer own;
  own.backend_ = &backend, own.call_ = call, own.choice_ = choice, own.options_ = options;
  SPARKLE_TRY(layer, PreparedLayer::make(backend, call, choice, options));
  own.layer_ = std::move(layer);
  if (options.verify) {
    const uint64_t seed = next_seed(options.seed, call.problem);
    SPARKLE_TRY(check, LayerCheck::make(call, seed, seed, backend.executor()));
    SPARKLE_CHECK(check_once(*own.layer_, *check, choice, options, own.checked_));
  }
  SPARKLE_TRY(operands, random_operands(call, next_seed(options.seed, call.problem)));
  SPARKLE_CHECK(own.layer_->take(std::move(operands)));
  SPARKLE_TRY(first, own.layer_->run());
  own.first_ = first;
  SPARKLE_CHECK(own.layer_->wipe());
  return own;
}

Status CheckedLayer::finish(LayerMeasurement& m) {
  m.workspace_bytes = layer_->workspace_bytes();
  if (!options_.verify) return ok();
  const std::string who = "The kernel " + to_text(choice_.schedules[0]);
  SPARKLE_TRY(output, layer_->output());
  SPARKLE_CHECK(all_written(call_, output, who));
  const SliceCheck slice(call_, layer_->inputs(), next_seed(options_.seed, call_.problem));
  if (slice.possible()) {
    m.largest_error = slice.error_of(output);
    SPARKLE_CHECK(accept_error(m.largest_error, call_.problem, who, options_,
                               bound_on_random(choice_, call_.problem) + slice.rounding()));
  }
  const uint64_t seed = next_seed(options_.seed, call_.problem);
  SPARKLE_TRY(check, LayerCheck::make(call_, seed, seed, backend_->executor()));
  SPARKLE_CHECK(check_once(*layer_, *check, choice_, options_, checked_));
  m.checked = checked_;
  return ok();
}

// Of an input axis that strides leap over only what lies under the filter is read.
double compulsory_bytes(const AnchorCall& call, const Choice& choice) {
  const Problem& p = call.problem;
  double bytes = static_cast<double>(call.output.bytes());
  for (const TensorDesc& d : call.inputs) bytes += static_cast<double>(d.bytes());
  if (stored_weights(variant_of(choice.schedules[0])) != DType::f32) bytes -= static_cast<double>(call.inputs[1].bytes()) / 2;
  if (p.kind != ProblemKind::conv) return bytes;
  double share = 1;
  for (size_t d = 0; d < 3; ++d)
    share *=
        std::min(1.0, static_cast<double>(p.out[d] * p.window.filter[d]) / static_cast<double>(std::max<int64_t>(1, p.in[d])));
  return bytes - (1 - share) * static_cast<double>(call.inputs[0].bytes());
}

void find_roof(const RoofProbes& probes, const Device& device, LayerMeasurement& m) {
  const AnchorCall call = call_of(m.problem, device);
  double counted = 0;
  for (const Footprint& f : m.choice.footprints) counted += f.executed_flops;
  m.executed_flops = std::min(executed_flops(m.problem), counted);
  m.compulsory_bytes = compulsory_bytes(call, m.choice);
  m.peak_flops_per_second = probes.peak();
  m.verdict = probes.judge({m.median_seconds, m.executed_flops, m.compulsory_bytes, 0, m.clock_of_device});
  m.roof_seconds = probes.peak() > 0 ? m.executed_flops / probes.peak() : 0;
  m.roof_bound = "compute";
  const std::vector<double> traffic = bytes_per_level(device, m.compulsory_bytes, m.compulsory_bytes);
  for (size_t i = 0; i < traffic.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    double rate = level.total_bytes_per_second > 0 ? level.total_bytes_per_second : level.bytes_per_second * device.cores;
    // What was probed beside counts, not what was measured some day.
    if (probes.bandwidth() > 0) rate = level.name == probes.level() ? probes.bandwidth() : 0;
    if (rate > 0 && traffic[i] / rate > m.roof_seconds) m.roof_seconds = traffic[i] / rate, m.roof_bound = level.name;
  }
}

double executed_flops(const Problem& p) {
  if (p.kind != ProblemKind::conv) return p.nominal_flops();
  double pairs = 1;  // (output, tap) pairs inside the image, per dimension
  for (size_t d = 0; d < 3; ++d) {
    double inside = 0;
    for (int64_t o = 0; o < p.out[d]; ++o)
      for (int64_t t = 0; t < p.window.filter[d]; ++t) {
        const int64_t i = o * p.window.stride[d] - p.window.pad_begin[d] + t * p.window.dilation[d];
        inside += i >= 0 && i < p.in[d];
      }
    pairs *= inside;
  }
  return 2 * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.c) / static_cast<double>(p.groups) *
         pairs;
}

std::string peak_unit(const Choice& choice, const Device& device) {
  const std::string& unit = unit_of(choice.schedules[0]);
  const MathUnit* widest = best_vector_unit(device);
  return device.unit(unit) || !widest ? unit : widest->name;
}

Result<Choice> choose_layer(Backend& backend, const Problem& problem, const LayerBenchOptions& options) {
  const Device& device = backend.device();
  SPARKLE_CHECK(check_type(problem, device));
  SPARKLE_CHECK(check_forced(options.plan));
  AnchorCall call = call_of(problem, device, options.planes);
  if (!options.constant_weights) call.fit.reset();
  SPARKLE_TRY(choice, plan_layer(backend, call, options.plan));
  SPARKLE_CHECK(check_as_forced(choice, short_name(problem), options.plan));
  return choice;
}

Status accept_error(double error, const Problem& problem, const std::string& who, const LayerBenchOptions& options,
                    double bound) {
  // A plain sum has errors too, whatever accuracy was asked of the algorithms.
  const double allowed = std::max({options.plan.accuracy, PlanOptions{}.accuracy, bound});
  if (error <= allowed) return ok();
  return Error{Reason::internal, who + " computes " + short_name(problem) + " wrongly: error " + std::to_string(error) +
                                     " of the largest output, more than the " + std::to_string(allowed) + " allowed."};
}

Result<LayerMeasurement> measure_layer(Backend& backend, const Problem& problem, const LayerBenchOptions& options) {
  return guard_memory("Measuring this layer", [&]() -> Result<LayerMeasurement> {
    SPARKLE_TRY(choice, choose_layer(backend, problem, options));
    return measure(backend, problem, std::move(choice), options);
  });
}

Result<LayerMeasurement> measure_choice(Backend& backend, const Problem& problem, Choice choice,
                                        const LayerBenchOptions& options) {
  return guard_memory("Measuring this layer", [&] { return measure(backend, problem, std::move(choice), options); });
}

}  // namespace sparkle
