#include "run/layer_bench.h"

#include <algorithm>

#include "base/out_of_memory.h"
#include "families/common.h"
#include "families/gemm/kept_weights.h"

namespace sparkle {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<LayerMeasurement> measure(Backend& backend, const Problem& problem, Choice choice, const LayerBenchOptions& options) {
  LayerMeasurement m;
  m.problem = problem;
  m.choice = std::move(choice);
  const AnchorCall call = call_of(problem, backend.device());
  SPARKLE_TRY(layer, PreparedLayer::make(backend, call, m.choice, options));
  m.workspace_bytes = layer->workspace_bytes();
  SPARKLE_TRY(first, layer->run());
  if (options.verify) {
    SPARKLE_TRY(output, layer->output());
    const LayerCheck check(call, layer->inputs(), options.seed);
    if (check.possible()) {
      m.largest_error = check.error_of(output);
      m.verified = true;
      SPARKLE_CHECK(accept_error(m.largest_error, problem, "The kernel " + to_text(m.choice.schedules[0]), options,
                                 m.choice.error + check.rounding()));
    }
  }
  const std::string unit = peak_unit(m.choice, backend.device());
  std::vector<double> samples, shares, peaks;
  m.clock_of_device = backend.keeps_time();
  const int repeats = std::clamp(static_cast<int>(options.seconds_per_round / std::max(first, 1e-7)), 1, 10000);
  for (int round = 0; round < options.rounds; ++round) {
    const double before = backend.probe_peak(unit);
    std::vector<double> visit;
    const Traffic traffic = backend.traffic();
    for (int i = 0; i < repeats; ++i) {
      SPARKLE_TRY(seconds, layer->run());
      visit.push_back(seconds);
    }
    m.host_transfers += backend.traffic().copies - traffic.copies + backend.traffic().host_transfers - traffic.host_transfers;
    const double peak = (before + backend.probe_peak(unit)) / 2;
    samples.insert(samples.end(), visit.begin(), visit.end());
    peaks.push_back(peak);
    if (peak > 0) shares.push_back(problem.nominal_flops() / median(visit) / peak);
  }
  std::sort(samples.begin(), samples.end());
  m.median_seconds = samples[samples.size() / 2];
  m.min_seconds = samples.front();
  m.p95_seconds = samples[samples.size() * 95 / 100];
  m.share_of_peak = median(shares);
  m.peak_flops_per_second = median(peaks);
  find_roof(backend.device(), m);
  return m;
}

}  // namespace

void find_roof(const Device& device, LayerMeasurement& m) {
  const AnchorCall call = call_of(m.problem, device);
  double counted = 0;
  for (const Footprint& f : m.choice.footprints) counted += f.executed_flops;
  m.executed_flops = std::min(executed_flops(m.problem), counted);
  const double peak = m.peak_flops_per_second;
  m.roof_seconds = peak > 0 ? m.executed_flops / peak : 0;
  m.roof_bound = "compute";
  double bytes = static_cast<double>(call.output.bytes());
  for (const TensorDesc& d : call.inputs) bytes += static_cast<double>(d.bytes());
  if (kept_weights(variant_of(m.choice.schedules[0])) != DType::f32) bytes -= static_cast<double>(call.inputs[1].bytes()) / 2;
  m.compulsory_bytes = bytes;
  const std::vector<double> traffic = bytes_per_level(device, bytes, bytes);
  for (size_t i = 0; i < traffic.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    const double rate = level.total_bytes_per_second > 0 ? level.total_bytes_per_second : level.bytes_per_second * device.cores;
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
  AnchorCall call = call_of(problem, device);
  if (!options.constant_weights) call.fit.reset();
  return choose(call, device, options.plan);
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
