// Speed of the gemm and winograd families' CPU kernels on a list of convolution layers, as a share of the FMA peak that was
// probed just before and after each slot of measurement (the clock of a shared machine wanders). Weights are constant and
// packed; bias and ReLU are fused. Usage: gemm_layers LAYERS.csv [--threads 1|2..] [--filter TEXT] [--candidate I] [--unit
// NAME] [--slots N]
// [--prefetch 0|1|2] [--kc N] [--tile 2|4|6] [--strip N]    (--tile: winograd instead of gemm)
// Flops are those of the direct convolution, padding taps counted: skipped taps can show as more than 100 %.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/roofs/roofs.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "families/stage.h"
#include "families/winograd/winograd.h"

namespace {
using namespace sparkle;

double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// GF/s of this thread on independent multiply-adds in registers.
double probe(bool wide) { return cpu::probe_peak(wide ? "avx512" : "avx2").core_flops_per_second * 1e-9; }

// Adds up the CPU time that the tasks take, whichever thread runs them: immune to neighbours on the cores.
class TimedExecutor final : public Executor {
 public:
  explicit TimedExecutor(int threads) : pool_(threads), busy_(static_cast<size_t>(threads) * 16, 0.0) {}
  int width() const override { return pool_.width(); }
  void run(int tasks, void (*work)(void*, int, int), void* context) override {
    parallel_for(pool_, tasks, [&](int task, int worker) {
      const double begin = now(CLOCK_THREAD_CPUTIME_ID);
      work(context, task, worker);
      busy_[static_cast<size_t>(worker) * 16] += now(CLOCK_THREAD_CPUTIME_ID) - begin;
    });
  }
  double take() {
    double sum = 0;
    for (double& b : busy_) sum += b, b = 0;
    return sum;
  }

 private:
  ThreadPool pool_;
  std::vector<double> busy_;
};

struct Layer {
  std::string name;
  int64_t n, c, h, w, k, r, s, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups;
};

std::vector<Layer> read_layers(const char* path) {
  std::vector<Layer> layers;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#' || line.rfind("name,", 0) == 0) continue;
    std::istringstream fields(line);
    Layer l;
    std::getline(fields, l.name, ',');
    for (int64_t* v : {&l.n, &l.c, &l.h, &l.w, &l.k, &l.r, &l.s, &l.stride_h, &l.stride_w, &l.pad_h, &l.pad_w, &l.dil_h,
                       &l.dil_w, &l.groups}) {
      std::string field;
      std::getline(fields, field, ',');
      *v = std::atoll(field.c_str());
    }
    layers.push_back(l);
  }
  return layers;
}

Stage stage_of(const Layer& l, int tile) {
  GemmParams p;
  p.groups = l.groups;
  p.window.filter = {1, l.r, l.s};
  p.window.stride = {1, l.stride_h, l.stride_w};
  p.window.dilation = {1, l.dil_h, l.dil_w};
  p.window.pad_begin = p.window.pad_end = {0, l.pad_h, l.pad_w};
  p.epilogue.bias = true;
  p.epilogue.activation = Activation::relu;
  const int64_t out_h = (l.h + 2 * l.pad_h - l.dil_h * (l.r - 1) - 1) / l.stride_h + 1;
  const int64_t out_w = (l.w + 2 * l.pad_w - l.dil_w * (l.s - 1) - 1) / l.stride_w + 1;
  TensorDesc x = dense_desc(DType::f32, {l.n, l.c, l.h, l.w}), y = dense_desc(DType::f32, {l.n, l.k, out_h, out_w});
  x.layout = channels_last(x.shape);
  y.layout = channels_last(y.shape);
  StageParams params = p;
  if (tile > 0) params = WinogradParams{tile, p.window, p.epilogue};
  return {params, {x, dense_desc(DType::f32, {l.k, l.c / l.groups, l.r, l.s}), dense_desc(DType::f32, {l.k})}, {y}};
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter, unit_name;
  int threads = 1, candidate = 0, slots = 21, prefetch = -1, kc = -1, tile = 0, strip = 0;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--threads") threads = std::atoi(argv[i + 1]);
    if (option == "--filter") filter = argv[i + 1];
    if (option == "--candidate") candidate = std::atoi(argv[i + 1]);
    if (option == "--unit") unit_name = argv[i + 1];
    if (option == "--slots") slots = std::atoi(argv[i + 1]);
    if (option == "--prefetch") prefetch = std::atoi(argv[i + 1]);
    if (option == "--kc") kc = std::atoi(argv[i + 1]);
    if (option == "--tile") tile = std::atoi(argv[i + 1]);
    if (option == "--strip") strip = std::atoi(argv[i + 1]);
  }
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: gemm_layers LAYERS.csv [--threads N] [--filter TEXT] [--candidate I] [--unit NAME]\n"
                 "                   [--slots N] [--prefetch 0|1|2] [--kc N] [--tile 2|4|6] [--strip N]\n");
    return 2;
  }
  Device device = probe_cpu();
  device.cores = threads;
  if (!unit_name.empty()) std::erase_if(device.units, [&](const MathUnit& u) { return u.name != unit_name; });
  std::printf("%s, %d thread(s)\n%-34s %8s %7s %7s %8s  %s\n", device.name.c_str(), threads, "layer", "GF/s", "%peak", "%wall",
              "best us", "schedule");
  std::map<std::string, std::pair<double, int>> groups;
  TimedExecutor executor(threads);
  for (const Layer& layer : read_layers(argv[1])) {
    if (layer.name.find(filter) == std::string::npos) continue;
    if (tile > 0 && (layer.r != 3 || layer.s != 3 || layer.stride_h != 1 || layer.dil_h != 1 || layer.groups != 1)) continue;
    const Stage stage = stage_of(layer, tile);
    const FamilyInfo& family = info(stage.family());
    std::vector<Schedule> schedules;
    Reason why = Reason::none;
    for (const Variant& variant : family.variants)
      if (variant.name != "plain")
        for (const Schedule& s : family.schedules(stage, variant, device, why)) schedules.push_back(s);
    if (static_cast<int>(schedules.size()) <= candidate) continue;
    Schedule schedule = schedules[static_cast<size_t>(candidate)];
    if (auto* gemm = get_if<GemmSchedule>(&schedule)) {
      if (prefetch >= 0) gemm->prefetch = prefetch;
      if (kc >= 0) gemm->kc = kc;
    } else if (auto* winograd = get_if<WinogradSchedule>(&schedule)) {
      if (prefetch >= 0) winograd->prefetch = prefetch;
      if (strip > 0) winograd->strip = strip;
    }
    auto made = tile > 0 ? cpu::make_winograd(stage, schedule, device, 2) : cpu::make_gemm(stage, schedule, device, 2);
    if (!made.ok()) {
      std::printf("%-34s %s\n", layer.name.c_str(), made.error().message.c_str());
      continue;
    }
    const cpu::CpuKernel& kernel = **made;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<HostTensor> tensors;
    for (const TensorDesc& desc : stage.inputs) {
      tensors.push_back(HostTensor::zeros(DType::f32, desc.shape));
      for (int64_t i = 0; i < desc.elements(); ++i) tensors.back().data<float>()[i] = normal(random);
    }
    HostTensor y = HostTensor::zeros(DType::f32, stage.outputs[0].shape);
    HostTensor packed = HostTensor::zeros(DType::f32, {kernel.packed_bytes(1) / 4});
    HostTensor workspace = HostTensor::zeros(DType::f32, {kernel.workspace_bytes() / 4 + 16});
    kernel.pack(1, tensors[1].bytes.get(), packed.bytes.get(), executor);
    std::byte* inputs[] = {tensors[0].bytes.get(), packed.bytes.get(), tensors[2].bytes.get()};
    std::byte* outputs[] = {y.bytes.get()};
    const cpu::CpuLaunch launch{inputs, outputs, workspace.bytes.get(), &executor};

    const double flops = 2.0 * static_cast<double>(y.elements() * (layer.c / layer.groups) * layer.r * layer.s);
    const bool wide = unit_of(schedule) == "avx512";
    for (int i = 0; i < 3; ++i) kernel.run(launch);
    std::vector<double> shares, rates;
    double best_wall = 1e9, best_peak = 0;
    const int repeats = std::max(1, static_cast<int>(2e-3 * 120e9 * threads / flops));
    for (int slot = 0, tried = 0; slot < slots && tried < 4 * slots; ++tried) {
      const double before = probe(wide);
      executor.take();
      const double cpu_begin = now(CLOCK_THREAD_CPUTIME_ID), wall_begin = now(CLOCK_MONOTONIC);
      for (int i = 0; i < repeats; ++i) kernel.run(launch);
      const double wall = (now(CLOCK_MONOTONIC) - wall_begin) / repeats;
      const double own = (now(CLOCK_THREAD_CPUTIME_ID) - cpu_begin) / repeats;
      const double busy = threads == 1 ? own : executor.take() / repeats;
      const double after = probe(wide);
      best_wall = std::min(best_wall, wall);
      best_peak = std::max({best_peak, before, after});
      if (std::abs(before - after) > 0.04 * before) continue;
      const double rate = flops / busy * 1e-9;
      rates.push_back(rate);
      shares.push_back(100 * rate / ((before + after) / 2));
      ++slot;
    }
    const double share = median(shares);
    const double wall_share = 100 * flops / best_wall * 1e-9 / (best_peak * threads);
    std::printf("%-34s %8.1f %7.1f %7.1f %8.1f  %s\n", layer.name.c_str(), median(rates) * threads, share, wall_share,
                best_wall * 1e6, to_text(schedule).c_str());
    std::fflush(stdout);
    auto& group = groups[layer.name.substr(0, layer.name.find('_'))];
    if (share > 0) group.first += std::log(share), ++group.second;
  }
  for (const auto& [name, sum] : groups)
    std::printf("geometric mean of %-12s %6.1f %% of peak over %d layers\n", name.c_str(), std::exp(sum.first / sum.second),
                sum.second);
  return 0;
}
