#include "measure/roofs/plan_roofs.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "families/common.h"
#include "families/gemm/stored_weights.h"
#include "families/windows/window.h"
#include "plan/choose/cost.h"

namespace sparkle {
namespace {

// Families that read each element of each operand.
bool reads_all(Family family) {
  return counts_products(family) || family == Family::pointwise || family == Family::reduce || family == Family::softmax ||
         family == Family::normalize || family == Family::quantize || family == Family::copy || family == Family::fft;
}

double bytes_of(const TensorDesc& desc) {
  double bytes = static_cast<double>(size_of(desc.dtype));
  for (int i = 0; i < desc.shape.size(); ++i)
    if (desc.layout.strides[i] != 0) bytes *= static_cast<double>(desc.shape[i]);
  return bytes;
}

// The share of an input that lies under the filter, where strides leap over the rest.
double touched(const Stage& stage) {
  double share = 1;
  if (const Window* window = window_of(stage.params))
    for (size_t d = 0; d < 3; ++d)
      share *= std::min(1.0, static_cast<double>(window->filter[d]) / static_cast<double>(window->stride[d]));
  return share;
}

}  // namespace

bool counts_products(Family family) {
  return family == Family::gemm || family == Family::direct || family == Family::depthwise || family == Family::grouped ||
         family == Family::winograd || family == Family::inverted;
}

double compulsory_bytes(const PlanStep& step) {
  const Stage& stage = step.stage;
  double bytes = 0;
  for (const TensorDesc& desc : stage.outputs) bytes += bytes_of(desc);
  if (!reads_all(stage.family())) return bytes;
  const bool halved = stored_weights(variant_of(step.schedule)) != DType::f32;
  for (size_t i = 0; i < stage.inputs.size(); ++i)
    bytes += bytes_of(stage.inputs[i]) * (i == 0 ? touched(stage) : i == 1 && halved ? 0.5 : 1);
  return bytes;
}

Cost roof_of(const PlanStep& step, const Device& device) {
  Footprint f;
  f.nominal_flops = f.executed_flops = std::min(step.footprint.executed_flops, step.footprint.nominal_flops);
  const double bytes = compulsory_bytes(step);
  f.bytes = bytes_per_level(device, bytes, bytes);
  f.parallel_items = 1e9;
  Device no_launch = device;
  no_launch.launch_seconds = 0;
  return cost_of(f, step.schedule, no_launch);
}

// Sizes are told apart by powers of four and probed at the smaller end, where memory is no slower.
double PlanRoofs::size_class(double bytes) const {
  return by_size_ && bytes > 0 ? std::exp2(2 * std::floor(std::log2(bytes) / 2)) : 0;
}

PlanRoofs::PlanRoofs(Backend& backend, const Plan& plan) : backend_(backend), by_size_(!knows_caches(backend)) {
  for (const PlanStep& step : plan.steps) {
    if (step.runs_on != RunsOn::device) continue;
    if (const std::string& unit = unit_of(step.schedule);
        !unit.empty() && std::find(units_.begin(), units_.end(), unit) == units_.end())
      units_.push_back(unit);
    if (!by_size_) continue;
    const double bytes = compulsory_bytes(step);
    const int level = holding_level(backend.device(), bytes);
    const auto same = [&](const Memory& m) { return m.level == static_cast<size_t>(level) && m.bytes == size_class(bytes); };
    if (level >= 0 && std::none_of(memories_.begin(), memories_.end(), same))
      memories_.push_back({static_cast<size_t>(level), size_class(bytes), {}});
  }
  for (size_t i = 0; !by_size_ && i < backend.device().memory.size(); ++i) memories_.push_back({i, 0, {}});
  peaks_.resize(units_.size());
}

void PlanRoofs::take() {
  for (size_t i = 0; i < units_.size(); ++i) peaks_[i].push_back(backend_.probe_peak(units_[i]));
  for (Memory& m : memories_) m.rates.push_back(bandwidth_of(backend_, m.level, m.bytes));
}

std::vector<double> PlanRoofs::peaks_of(const std::string& unit) const {
  const auto at = std::find(units_.begin(), units_.end(), unit);
  return at == units_.end() ? std::vector<double>{} : peaks_[static_cast<size_t>(at - units_.begin())];
}

RoofVerdict PlanRoofs::judge(const PlanStep& step, double seconds) const {
  const Device& device = backend_.device();
  RoofClaim claim;
  claim.seconds = seconds;
  claim.compulsory_bytes = compulsory_bytes(step);
  if (counts_products(step.stage.family()) && step.footprint.nominal_flops > 0)
    claim.executed_flops = std::min(step.footprint.executed_flops, step.footprint.nominal_flops);
  claim.clock_of_device = backend_.keeps_time();
  const int level = holding_level(device, claim.compulsory_bytes);
  std::vector<double> bandwidths;
  std::string name;
  if (level >= 0) {
    claim.kept_bytes = held_inside(device, level);
    name = device.memory[static_cast<size_t>(level)].name;
    for (const Memory& m : memories_)
      if (m.level == static_cast<size_t>(level) && m.bytes == size_class(claim.compulsory_bytes)) bandwidths = m.rates;
  }
  const std::string& unit = unit_of(step.schedule);
  return sparkle::judge(claim, unit, peaks_of(unit), name, bandwidths);
}

Device PlanRoofs::device() const {
  Device d = backend_.device();
  const double cores = std::max(1, d.cores);
  for (MathUnit& unit : d.units)
    if (const double peak = median(peaks_of(unit.name)); peak > 0)
      unit.total_flops_per_second = peak, unit.flops_per_second = peak / cores;
  for (const Memory& m : memories_)
    if (const double rate = median(m.rates); rate > 0 && m.bytes == 0)
      d.memory[m.level].total_bytes_per_second = rate, d.memory[m.level].bytes_per_second = rate / cores;
  return d;
}

}  // namespace sparkle
