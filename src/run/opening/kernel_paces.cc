#include "run/opening/kernel_paces.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "backends/cpu/roofs/roofs.h"
#include "backends/cpu/small_layers.h"
#include "base/median.h"
#include "families/common.h"
#include "families/depthwise/depthwise.h"
#include "families/direct/direct.h"
#include "families/gemm/gemm.h"
#include "families/grouped/grouped.h"
#include "families/registry.h"
#include "families/winograd/winograd.h"
#include "plan/choose/cost.h"

namespace sparkle {
namespace {

using cpu::convolution;
using cpu::SmallLayer;
using Clock = std::chrono::steady_clock;

// What layers of real sizes, whose operands come from further away, take beside these: 1.04 to 1.07 on a Zen 4, 111 layers of
// shapes/layers.csv by AVX-512 and AVX2.
constexpr double kElsewhere = 1.05;
// A machine that somebody else uses tells nonsense: what lies beyond is taken for it.
constexpr double kLeastPace = 0.8, kMostPace = 1.6;
constexpr int kRuns = 7;
// Where it takes longer, under an emulator or a sanitizer, what was measured so far has to do.
constexpr double kMostSeconds = 1, kMostSecondsOfKernel = 0.05;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Sizes of published networks, some of each: long and short sums, whole and broken tiles.
std::vector<Stage> samples() {
  std::vector<Stage> stages;
  for (const SmallLayer& s : {SmallLayer{128, 128, 28}, {64, 64, 28, 3}, {64, 128, 28, 3, 2}, {96, 160, 14}, {384, 64, 14}})
    stages.push_back(convolution(GemmParams{}, s));
  for (const SmallLayer& s : {SmallLayer{64, 128, 28}, {3, 32, 112, 3, 2}, {48, 144, 28}})
    stages.push_back(convolution(DirectParams{}, s));
  for (const SmallLayer& s : {SmallLayer{64, 64, 28, 3}, {128, 128, 14, 3}, {32, 48, 56, 3}}) {
    for (int tile : {4, 6}) {
      WinogradParams p;
      p.tile = tile;
      stages.push_back(convolution(p, s));
    }
  }
  for (const SmallLayer& s :
       {SmallLayer{96, 96, 28, 3, 1, 96}, {96, 96, 28, 3, 2, 96}, {192, 192, 14, 5, 1, 192}, {96, 96, 28, 7, 1, 96}})
    stages.push_back(convolution(DepthwiseParams{}, s));
  for (const SmallLayer& s : {SmallLayer{128, 128, 28, 3, 1, 32}, {256, 256, 14, 3, 1, 32}, {96, 96, 28, 3, 1, 12}})
    stages.push_back(convolution(GroupedParams{}, s));
  return stages;
}

// As benches tell it: the median of some runs.
double seconds_of(cpu::KernelInMemory& kernel) {
  std::vector<double> times;
  const auto first = Clock::now();
  for (int i = 0; i <= kRuns && (times.empty() || since(first) < kMostSecondsOfKernel); ++i) {
    const auto begin = Clock::now();
    kernel.kernel().run(kernel.launch());
    if (i > 0) times.push_back(since(begin));
  }
  return median(times);
}

// Measured / predicted of a variant's samples.
struct Ratios {
  std::string name;
  double logarithms = 0;
  int count = 0;
};

// By each variant of the stage's family that arithmetic binds, under the schedule that a plan would choose.
void measure(const Stage& stage, const Device& device, const MathUnit& unit, std::vector<Ratios>& found) {
  const FamilyInfo& family = info(stage.family());
  for (const Variant& variant : family.variants) {
    Reason why{};
    if (variant.name == "plain" || !variant.runs_on(device)) continue;
    const std::vector<Schedule> schedules = family.schedules(stage, variant, device, why);
    const Schedule* best = nullptr;
    Cost cost;
    for (const Schedule& s : schedules) {
      if (unit_of(s) != unit.name) continue;
      const Cost c = cost_of(family.footprint(stage, s, device), s, device);
      if (!best || c.seconds < cost.seconds) best = &s, cost = c;
    }
    if (!best || cost.bound != "compute") continue;
    auto made = cpu::factory_of(stage.family(), variant.name)(stage, *best, device, 2);
    if (!made.ok()) continue;
    cpu::KernelInMemory kernel(stage, std::move(*made));
    const double before = cpu::probe_peak(unit.name, 1e-3).flops_per_second;
    const double seconds = seconds_of(kernel);
    const double now = std::max(before, cpu::probe_peak(unit.name, 1e-3).flops_per_second);
    // As long as the clock was what it was while the rates were measured.
    const double clock = now > 0 ? now / unit.flops_per_second : 1;
    const double ratio = std::clamp(seconds / cost.seconds * std::clamp(clock, 0.5, 1.5), kLeastPace, kMostPace);
    const std::string name = std::string(family.name) + " " + std::string(variant.name);
    auto at = std::find_if(found.begin(), found.end(), [&](const Ratios& r) { return r.name == name; });
    if (at == found.end()) at = found.insert(found.end(), {name});
    at->logarithms += std::log(ratio), ++at->count;
  }
}

}  // namespace

void measure_paces(Device& device) {
  device.paces.clear();
  Device core = device;
  core.cores = 1;
  const MathUnit* unit = best_vector_unit(core);
  if (!unit || unit->flops_per_second <= 0) return;
  std::vector<Ratios> found;
  const auto begin = Clock::now();
  for (const Stage& stage : samples())
    if (since(begin) < kMostSeconds) measure(stage, core, *unit, found);
  for (const Ratios& r : found) device.paces.push_back({r.name, unit->name, kElsewhere * std::exp(r.logarithms / r.count)});
}

}  // namespace sparkle
