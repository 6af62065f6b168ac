#include "measure/roofs/roof_judge.h"

#include <algorithm>
#include <cstdio>

#include "backends/memory_probe.h"
#include "base/median.h"

namespace sparkle {
namespace {

// What a median over a few hundred samples and probes of 1.5 ms differ by on a quiet machine is below these.
constexpr double kTolerance = 0.05, kDeviceTolerance = 0.03;

RoofRate rate_under(const std::string& of, double amount, double seconds, std::vector<double> probes) {
  std::erase_if(probes, [](double p) { return !(p > 0); });
  if (of.empty() || probes.empty() || !(amount > 0) || !(seconds > 0)) return {};
  const double roof = median(probes);
  return {of, amount / seconds, roof, *std::max_element(probes.begin(), probes.end()) / roof - 1};
}

std::string text(const char* pattern, auto... values) {
  char line[400];
  std::snprintf(line, sizeof line, pattern, values...);
  return line;
}

}  // namespace

std::string RoofVerdict::error_text(const std::string& who) const {
  const auto say = [&](const RoofRate& r, const char* what, const char* unit) {
    return text(
        "'%.80s' shows %.1f %s, which is %.0f %% of the %.1f that were probed beside for %s; 100 %% and %.1f for tolerance and "
        "the probes' own spread are the most there can be: the measurement is wrong.",
        who.c_str(), r.rate * 1e-9, what, 100 * r.rate / r.roof, r.roof * 1e-9, unit, 100 * (tolerance + r.spread));
  };
  if (above(compute)) return say(compute, "executed GFLOP/s", compute.of.c_str());
  if (above(memory)) return say(memory, "GB/s of compulsory traffic", memory.of.c_str());
  return {};
}

std::string RoofVerdict::probed() const {
  std::string all;
  if (compute.roof > 0)
    all = text("%s %.1f GFLOP/s, probes within %.1f %%", compute.of.c_str(), compute.roof * 1e-9, 100 * compute.spread);
  if (memory.roof > 0)
    all += text("%s%s %.1f GB/s, probes within %.1f %%", all.empty() ? "" : "; ", memory.of.c_str(), memory.roof * 1e-9,
                100 * memory.spread);
  return all;
}

namespace {
double capacity(const Device& device, const MemoryLevel& level) {
  const int instances = std::max(1, device.cores / std::max(1, level.shared_by));
  return static_cast<double>(level.bytes) * instances;
}
}  // namespace

int holding_level(const Device& device, double bytes) {
  for (size_t i = 0; i < device.memory.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    if (level.filled_by_hand) continue;
    if (i + 1 == device.memory.size() || capacity(device, level) >= bytes) return static_cast<int>(i);
  }
  return -1;
}

double held_inside(const Device& device, int level) {
  double bytes = 0;  // caches that exclude what is further in add up
  for (int i = 0; i < level; ++i) {
    const MemoryLevel& inner = device.memory[static_cast<size_t>(i)];
    if (!inner.filled_by_hand) bytes += capacity(device, inner);
  }
  return bytes;
}

RoofVerdict judge(const RoofClaim& claim, const std::string& unit, const std::vector<double>& peaks, const std::string& level,
                  const std::vector<double>& bandwidths) {
  RoofVerdict v;
  v.tolerance = claim.clock_of_device ? kDeviceTolerance : kTolerance;
  v.compute = rate_under(unit, claim.executed_flops, claim.seconds, peaks);
  v.memory = rate_under(level, claim.compulsory_bytes - claim.kept_bytes, claim.seconds, bandwidths);
  return v;
}

double bandwidth_of(Backend& backend, size_t level, double bytes) {
  auto* const memory = dynamic_cast<MemoryProbe*>(&backend);
  return memory ? memory->probe_bandwidth(level, bytes) : 0;
}

void forget_probes(Backend& backend) {
  if (auto* const memory = dynamic_cast<MemoryProbe*>(&backend)) memory->forget_probes();
}

bool knows_caches(Backend& backend) {
  const auto* const memory = dynamic_cast<MemoryProbe*>(&backend);
  return !memory || memory->knows_caches();
}

RoofProbes::RoofProbes(Backend& backend, std::string unit, double bytes)
    : backend_(&backend), unit_(std::move(unit)), bytes_(bytes) {
  const Device& device = backend.device();
  index_ = bytes > 0 ? holding_level(device, bytes) : -1;
  if (index_ < 0) return;
  level_ = device.memory[static_cast<size_t>(index_)].name;
  inside_ = held_inside(device, index_);
}

double RoofProbes::take() {
  peaks_.push_back(backend_->probe_peak(unit_));
  if (index_ >= 0) bandwidths_.push_back(bandwidth_of(*backend_, static_cast<size_t>(index_), bytes_));
  return peaks_.back();
}

double RoofProbes::peak() const { return median(peaks_); }
double RoofProbes::bandwidth() const { return median(bandwidths_); }

RoofVerdict RoofProbes::judge(RoofClaim claim) const {
  claim.kept_bytes = inside_;
  return sparkle::judge(claim, unit_, peaks_, level_, bandwidths_);
}

void RoofProbes::add(const RoofProbes& other) {
  peaks_.insert(peaks_.end(), other.peaks_.begin(), other.peaks_.end());
  bandwidths_.insert(bandwidths_.end(), other.bandwidths_.begin(), other.bandwidths_.end());
}

}  // namespace sparkle
