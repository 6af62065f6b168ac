// Inverted residual blocks in one step against their layers apart, on the CPU: interleaved rounds in one process, wall time,
// with the share of the FMA peak probed beside (flops of the direct layers). Usage:
//   inverted_blocks [--threads N] [--filter TEXT] [--rounds N] [--device FILE.json] [--nr N] [--rows N]
// Rows are the blocks of MobileNetV2 by number, the first block of two layers, and others with 5x5 filters.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/roofs/roofs.h"
#include "base/system/thread_pool.h"
#include "device/device_json.h"
#include "families/inverted/inverted.h"
#include "families/registry.h"
#include "plan/choose/choose.h"
#include "plan/choose/cost.h"

namespace {
using namespace sparkle;
using Clock = std::chrono::steady_clock;

struct Block {
  const char* name;
  int64_t size, c, wide, k, stride, filter;
  bool expand, residual;
};
constexpr Block kBlocks[] = {{"mbv2_1_112_32_16", 112, 32, 32, 16, 1, 3, false, false},
                             {"mbv2_2_112_16_96_24", 112, 16, 96, 24, 2, 3, true, false},
                             {"mbv2_3_56_24_144_24", 56, 24, 144, 24, 1, 3, true, true},
                             {"mbv2_4_56_24_144_32", 56, 24, 144, 32, 2, 3, true, false},
                             {"mbv2_5_28_32_192_32", 28, 32, 192, 32, 1, 3, true, true},
                             {"mbv2_7_28_32_192_64", 28, 32, 192, 64, 2, 3, true, false},
                             {"mbv2_8_14_64_384_64", 14, 64, 384, 64, 1, 3, true, true},
                             {"mbv2_11_14_64_384_96", 14, 64, 384, 96, 1, 3, true, false},
                             {"mbv2_12_14_96_576_96", 14, 96, 576, 96, 1, 3, true, true},
                             {"mbv2_14_14_96_576_160", 14, 96, 576, 160, 2, 3, true, false},
                             {"mbv2_15_7_160_960_160", 7, 160, 960, 160, 1, 3, true, true},
                             {"mbv2_17_7_160_960_320", 7, 160, 960, 320, 1, 3, true, false},
                             {"mbv1_112_32_64", 112, 32, 32, 64, 1, 3, false, false},
                             {"mbv1_112_64_128_s2", 112, 64, 64, 128, 2, 3, false, false},
                             {"mbv1_56_128_128", 56, 128, 128, 128, 1, 3, false, false},
                             {"mbv1_28_256_256", 28, 256, 256, 256, 1, 3, false, false},
                             {"mbv1_14_512_512", 14, 512, 512, 512, 1, 3, false, false},
                             {"mnas_56_24_72_40_5x5_s2", 56, 24, 72, 40, 2, 5, true, false},
                             {"mnas_28_40_120_40_5x5", 28, 40, 120, 40, 1, 5, true, true}};

TensorDesc maps(int64_t c, int64_t h, int64_t w) { return {DType::f32, {1, c, h, w}, channels_last({1, c, h, w})}; }

Problem problem_of(int64_t c, int64_t k, int64_t in, int64_t out, int64_t filter, int64_t stride, int64_t groups, bool clip) {
  Problem p;
  p.n = 1, p.c = c, p.k = k, p.groups = groups;
  p.in = {1, in, in}, p.out = {1, out, out};
  p.window.filter = {1, filter, filter}, p.window.stride = {1, stride, stride};
  p.window.pad_begin = p.window.pad_end = {0, filter / 2, filter / 2};
  p.epilogue.bias = true;
  if (clip) p.epilogue.activation = Activation::clip, p.epilogue.b = 6;
  return p;
}

// A compiled stage with operands of its own but for the planes that it shares with others.
struct Compiled {
  cpu::CpuKernelPtr kernel;
  Schedule schedule;
  double predicted = 0;
  std::vector<HostTensor> own;
  std::vector<std::byte*> inputs, outputs;
  HostTensor workspace;
  void run(Executor& executor) const { kernel->run({inputs, outputs, workspace.bytes.get(), &executor}); }
};

HostTensor filled(const Dims& shape, float scale) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  HostTensor t = HostTensor::zeros(DType::f32, shape);
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = scale * normal(random);
  return t;
}

using KernelFactory = Result<cpu::CpuKernelPtr> (*)(const Stage&, const Schedule&, const Device&, uint32_t);
Compiled compiled(const Stage& stage, const Schedule& schedule, const Device& device, const std::vector<HostTensor*>& operands,
                  HostTensor& y, Executor& executor) {
  const KernelFactory make = stage.family() == Family::gemm        ? cpu::make_gemm
                             : stage.family() == Family::depthwise ? cpu::make_depthwise
                                                                   : cpu::make_inverted;
  uint32_t constants = 0;
  for (size_t i = 1; i < operands.size(); ++i) constants |= 1u << i;
  auto made = make(stage, schedule, device, constants);
  if (!made.ok()) std::fprintf(stderr, "%s\n", made.error().message.c_str()), std::exit(1);
  Compiled c;
  c.kernel = std::move(*made);
  c.schedule = schedule;
  c.predicted = cost_of(info(stage.family()).footprint(stage, schedule, device), schedule, device).seconds;
  for (size_t i = 0; i < operands.size(); ++i) {
    const int64_t bytes = c.kernel->packed_bytes(static_cast<int>(i));
    c.inputs.push_back(operands[i]->bytes.get());
    if (i == 0 || bytes == 0) continue;
    c.own.push_back(HostTensor::zeros(DType::f32, {bytes / 4}));
    c.kernel->pack(static_cast<int>(i), operands[i]->bytes.get(), c.own.back().bytes.get(), executor);
    c.inputs.back() = c.own.back().bytes.get();
  }
  c.outputs = {y.bytes.get()};
  c.workspace = HostTensor::zeros(DType::f32, {c.kernel->workspace_bytes() / 4 + 16});
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter, device_file = "devices/epyc-zen4.json";
  int threads = 1, rounds = 60, nr = 0, rows = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--threads") threads = std::atoi(argv[i + 1]);
    if (option == "--filter") filter = argv[i + 1];
    if (option == "--rounds") rounds = std::atoi(argv[i + 1]);
    if (option == "--nr") nr = std::atoi(argv[i + 1]);
    if (option == "--rows") rows = std::atoi(argv[i + 1]);
    if (option == "--device") device_file = argv[i + 1];
  }
  auto read = load_device(device_file);
  if (!read.ok()) return std::fprintf(stderr, "%s\n", read.error().message.c_str()), 1;
  Device device = *read;
  device.cores = threads;
  ThreadPool pool(threads);
  std::printf("%s, %d thread(s), us: median (min) [predicted]\n", device.name.c_str(), threads);
  for (const Block& b : kBlocks) {
    if (std::string(b.name).find(filter) == std::string::npos) continue;
    const int64_t out = (b.size - 1) / b.stride + 1;
    HostTensor x = filled({1, b.size, b.size, b.c}, 1), wide = filled({1, b.size, b.size, b.wide}, 1),
               deep = filled({1, out, out, b.wide}, 1), y = filled({1, out, out, b.k}, 1),
               fused_y = filled({1, out, out, b.k}, 1);
    HostTensor we = filled({b.wide, b.c, 1, 1}, 0.3f), be = filled({b.wide}, 0.3f),
               wd = filled({b.wide, 1, b.filter, b.filter}, 0.3f), bd = filled({b.wide}, 0.3f),
               wp = filled({b.k, b.wide, 1, 1}, 0.1f), bp = filled({b.k}, 0.3f);
    HostTensor& wide_plane = b.expand ? wide : x;
    Problem expand = problem_of(b.c, b.wide, b.size, b.size, 1, 1, 1, true);
    Problem depth = problem_of(b.wide, b.wide, b.size, out, b.filter, b.stride, b.wide, true);
    Problem project = problem_of(b.wide, b.k, out, out, 1, 1, 1, false);
    project.epilogue.residuals_before = b.residual;
    std::vector<Compiled> apart;
    const auto layer = [&](const Problem& p, std::vector<HostTensor*> operands, HostTensor& to) {
      ProblemOperands shapes = operands_of(p);
      auto choice = choose(AnchorCall{p, shapes.inputs, shapes.output}, device, {});
      if (!choice.ok()) std::exit(1);
      apart.push_back(compiled(choice->plan.stages[0].stage, choice->schedules[0], device, operands, to, pool));
    };
    if (b.expand) layer(expand, {&x, &we, &be}, wide);
    layer(depth, {&wide_plane, &wd, &bd}, deep);
    std::vector<HostTensor*> last{&deep, &wp, &bp};
    if (b.residual) last.push_back(&x);
    layer(project, last, y);

    InvertedParams params;
    params.expand = b.expand;
    params.window = depth.window;
    params.wide = expand.epilogue, params.deep = depth.epilogue, params.project = project.epilogue;
    Stage stage{params, {maps(b.c, b.size, b.size)}, {maps(b.k, out, out)}};
    std::vector<HostTensor*> operands{&x};
    const auto add = [&](HostTensor& t) { stage.inputs.push_back(dense_desc(DType::f32, t.shape)), operands.push_back(&t); };
    if (b.expand) add(we), add(be);
    add(wd), add(bd), add(wp), add(bp);
    if (b.residual) stage.inputs.push_back(maps(b.c, b.size, b.size)), operands.push_back(&x);
    std::vector<Compiled> fused;
    for (const Variant& variant : inverted_info().variants) {
      Reason why = Reason::none;
      if (variant.name == "plain") continue;
      for (Schedule& s : inverted_info().schedules(stage, variant, device, why)) {
        auto& schedule = get<InvertedSchedule>(s);
        for (int n : {2, 4}) {
          if (n > variant.vectors) continue;
          if ((nr && n != nr) || (rows && schedule.rows != rows)) continue;
          schedule.nr = n;
          fused.push_back(compiled(stage, schedule, device, operands, fused_y, pool));
        }
      }
    }
    std::vector<std::vector<double>> times(apart.size() + fused.size());
    const double flops = (b.expand ? expand.nominal_flops() : 0) + depth.nominal_flops() + project.nominal_flops();
    const int repeats = std::max(1, static_cast<int>(1e-3 * 100e9 * threads / flops));
    double peak = 0;
    for (int round = 0; round < rounds; ++round) {
      peak = std::max(peak, cpu::probe_peak("avx512").core_flops_per_second * threads);
      for (size_t i = 0; i < apart.size(); ++i) times[i].push_back(0);
      for (int r = 0; r < repeats; ++r)
        for (size_t i = 0; i < apart.size(); ++i) {
          const auto begin = Clock::now();
          apart[i].run(pool);
          times[i].back() += std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
        }
      for (size_t i = 0; i < fused.size(); ++i) {
        const auto begin = Clock::now();
        for (int r = 0; r < repeats; ++r) fused[i].run(pool);
        times[apart.size() + i].push_back(std::chrono::duration<double>(Clock::now() - begin).count() / repeats);
      }
    }
    double error = 0, most = 0;
    for (int64_t i = 0; i < y.elements(); ++i) {
      const auto want = static_cast<double>(y.data<float>()[i]);
      error = std::max(error, std::abs(want - static_cast<double>(fused_y.data<float>()[i]))),
      most = std::max(most, std::abs(want));
    }
    double sum = 0, least = 0, predicted = 0;
    std::printf("%-24s apart", b.name);
    for (size_t i = 0; i < times.size(); ++i) {
      std::sort(times[i].begin(), times[i].end());
      const double m = times[i][times[i].size() / 2] * 1e6, low = times[i][0] * 1e6;
      if (i < apart.size()) {
        sum += m, least += low, predicted += apart[i].predicted * 1e6;
        std::printf(" %.0f", m);
        if (i + 1 == apart.size())
          std::printf(" = %.0f (%.0f) [%.0f], %.0f %% of peak; difference %.1e\n", sum, least, predicted,
                      100 * flops / least * 1e6 / peak, error / most);
        continue;
      }
      const Compiled& c = fused[i - apart.size()];
      const auto& s = get<InvertedSchedule>(c.schedule);
      std::printf("    %-8s nr %d rows %2lld  %.0f (%.0f) [%.0f]  ratio %.2f (%.2f), %.0f %% of peak\n", s.variant.c_str(),
                  s.nr, static_cast<long long>(s.rows), m, low, c.predicted * 1e6, m / sum, low / least,
                  100 * flops / low * 1e6 / peak);
    }
    std::fflush(stdout);
  }
  return 0;
}
