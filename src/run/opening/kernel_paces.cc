#include "run/opening/kernel_paces.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/roofs/roofs.h"
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

using Clock = std::chrono::steady_clock;

// A machine that somebody else uses tells nonsense: what lies beyond is taken for it.
constexpr double kLeastPace = 0.8, kMostPace = 1.6;
constexpr int kRuns = 7;
// Where it takes longer, under an emulator or a sanitizer, what was measured so far has to do.
constexpr double kMostSeconds = 1, kMostSecondsOfKernel = 0.05;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Shape {
  int64_t c, k, size, filter = 1, stride = 1, groups = 1;
};

template <class Params>
Stage convolution(Params p, const Shape& s) {
  const int64_t pad = s.filter / 2, out = (s.size + 2 * pad - s.filter) / s.stride + 1;
  p.window = {{1, s.filter, s.filter}, {1, s.stride, s.stride}, {1, 1, 1}, {0, pad, pad}, {0, pad, pad}};
  p.epilogue.bias = true, p.epilogue.activation = Activation::relu;
  if constexpr (requires { p.groups; }) p.groups = s.groups;
  const Dims xs{1, s.c, s.size, s.size}, ys{1, s.k, out, out};
  return {p,
          {{DType::f32, xs, channels_last(xs)},
           dense_desc(DType::f32, {s.k, s.c / s.groups, s.filter, s.filter}),
           dense_desc(DType::f32, {s.k})},
          {{DType::f32, ys, channels_last(ys)}}};
}

// Sizes of published networks, some of each: long and short sums, whole and broken tiles.
std::vector<Stage> samples() {
  std::vector<Stage> stages;
  for (const Shape& s : {Shape{128, 128, 28}, {64, 64, 28, 3}, {64, 128, 28, 3, 2}, {96, 160, 14}, {384, 64, 14}})
    stages.push_back(convolution(GemmParams{}, s));
  for (const Shape& s : {Shape{64, 128, 28}, {3, 32, 112, 3, 2}, {48, 144, 28}})
    stages.push_back(convolution(DirectParams{}, s));
  for (const Shape& s : {Shape{64, 64, 28, 3}, {128, 128, 14, 3}, {32, 48, 56, 3}}) {
    for (int tile : {4, 6}) {
      WinogradParams p;
      p.tile = tile;
      stages.push_back(convolution(p, s));
    }
  }
  for (const Shape& s :
       {Shape{96, 96, 28, 3, 1, 96}, {96, 96, 28, 3, 2, 96}, {192, 192, 14, 5, 1, 192}, {96, 96, 28, 7, 1, 96}})
    stages.push_back(convolution(DepthwiseParams{}, s));
  for (const Shape& s : {Shape{128, 128, 28, 3, 1, 32}, {256, 256, 14, 3, 1, 32}, {96, 96, 28, 3, 1, 12}})
    stages.push_back(convolution(GroupedParams{}, s));
  return stages;
}

// A stage's operands in memory and its kernel.
class TimedKernel {
 public:
  TimedKernel(const Stage& stage, std::unique_ptr<cpu::CpuKernel> kernel, Executor& executor)
      : kernel_(std::move(kernel)), executor_(executor) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < stage.inputs.size(); ++i) {
      HostTensor values = HostTensor::zeros(DType::f32, stage.inputs[i].shape);
      for (int64_t k = 0; k < values.elements(); ++k) values.data<float>()[k] = normal(random);
      if (const int64_t bytes = i == 1 ? kernel_->packed_bytes(1) : 0; bytes > 0) {
        HostTensor packed = HostTensor::zeros(DType::f32, Dims{(bytes + 3) / 4});
        kernel_->pack(1, values.bytes.get(), packed.bytes.get(), executor);
        values = std::move(packed);
      }
      inputs_.push_back(values.bytes.get());
      memory_.push_back(std::move(values));
    }
    memory_.push_back(HostTensor::zeros(DType::f32, stage.outputs[0].shape));
    output_ = memory_.back().bytes.get();
    memory_.push_back(HostTensor::zeros(DType::f32, Dims{(kernel_->workspace_bytes() + 3) / 4}));
    workspace_ = memory_.back().bytes.get();
  }

  // As benches tell it: the median.
  double seconds() {
    std::vector<double> times;
    const auto first = Clock::now();
    for (int i = 0; i <= kRuns && (times.empty() || since(first) < kMostSecondsOfKernel); ++i) {
      const auto begin = Clock::now();
      kernel_->run({inputs_, {&output_, 1}, workspace_, &executor_});
      if (i > 0) times.push_back(since(begin));
    }
    return median(times);
  }

 private:
  std::unique_ptr<cpu::CpuKernel> kernel_;
  Executor& executor_;
  std::vector<HostTensor> memory_;
  std::vector<std::byte*> inputs_;
  std::byte* output_ = nullptr;
  std::byte* workspace_ = nullptr;
};

// measured / predicted of each of its schedules' first choice; empty where arithmetic is not what binds it.
struct Ratios {
  std::string name;
  double logarithms = 0;
  int count = 0;
};

void measure(const Stage& stage, const Device& device, const MathUnit& unit, Executor& executor, std::vector<Ratios>& found) {
  const FamilyInfo& family = info(stage.family());
  for (const Variant& variant : family.variants) {
    Reason why{};
    if (variant.name == "plain" || !variant.runs_on(device)) continue;
    const std::vector<Schedule> schedules = family.schedules(stage, variant, device, why);
    // The best of them as a plan would choose.
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
    TimedKernel kernel(stage, std::move(*made), executor);
    const double before = cpu::probe_peak(unit.name, executor, 1e-3).flops_per_second;
    const double seconds = kernel.seconds();
    const double now = std::max(before, cpu::probe_peak(unit.name, executor, 1e-3).flops_per_second);
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
  InlineExecutor executor;
  const MathUnit* unit = best_vector_unit(core);
  if (!unit || unit->flops_per_second <= 0) return;
  std::vector<Ratios> found;
  const auto begin = Clock::now();
  for (const Stage& stage : samples())
    if (since(begin) < kMostSeconds) measure(stage, core, *unit, executor, found);
  for (const Ratios& r : found) device.paces.push_back({r.name, unit->name, std::exp(r.logarithms / r.count)});
}

}  // namespace sparkle
