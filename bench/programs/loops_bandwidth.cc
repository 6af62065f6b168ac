// Memory rates of the streaming families on large tensors beside a copy and a triad of the same run.
//   loops_bandwidth [unit [megabytes [threads]]]     defaults: avx512 (or avx2), 32 MB per tensor, 1 and 2 threads
// Rates count what a kernel must read and write once. Kernels and yardsticks take turns; the median of the rounds is shown.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "base/system/thread_pool.h"
#include "families/normalize/normalize.h"
#include "families/pointwise/pointwise.h"
#include "families/reduce/reduce.h"
#include "families/softmax/softmax.h"

namespace {

using namespace sparkle;

struct Entry {
  std::string name;
  double bytes = 0;
  std::function<void()> run;
  std::vector<double> seconds;
};

PointwiseParams program(int inputs, std::vector<PointwiseInstruction> steps) { return {inputs, std::move(steps)}; }

}  // namespace

int main(int argc, char** argv) {
  std::string unit = argc > 1 ? argv[1] : "";
#if defined(__x86_64__)
  if (unit.empty()) unit = __builtin_cpu_supports("avx512vl") ? "avx512" : "avx2";
#else
  if (unit.empty()) unit = "neon";
#endif
  const int64_t megabytes = argc > 2 ? std::atoi(argv[2]) : 32;
  const int only = argc > 3 ? std::atoi(argv[3]) : 0;
  const int64_t channels = 64, pixels = megabytes * (1 << 20) / 4 / channels / 128 * 128;
  const Dims image{1, channels, pixels / 128, 128}, rows{pixels * channels / 1000, 1000};
  const TensorDesc last{DType::f32, image, channels_last(image)}, first{DType::f32, image, row_major(image)};
  const TensorDesc table{DType::f32, rows, row_major(rows)};

  HostTensor x = HostTensor::zeros(DType::f32, {pixels * channels}), y = HostTensor::zeros(DType::f32, {pixels * channels});
  HostTensor z = HostTensor::zeros(DType::f32, {pixels * channels});
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < pixels * channels; ++i) x.data<float>()[i] = normal(random), y.data<float>()[i] = normal(random);

  for (int threads : {1, 2}) {
    if (only && threads != only) continue;
    ThreadPool pool(threads);
    std::vector<Entry> entries;
    std::vector<std::unique_ptr<cpu::CpuKernel>> kernels;
    std::vector<HostTensor> workspaces;
    const double tensor = static_cast<double>(x.size_bytes());
    const auto per_thread = [&](auto body) {
      parallel_for(pool, threads, [&](int task, int) {
        const int64_t n = x.elements();
        body(n * task / threads, n * (task + 1) / threads);
      });
    };
    entries.push_back({"memcpy",
                       2 * tensor,
                       [&] {
                         per_thread([&](int64_t b, int64_t e) {
                           std::memcpy(z.data<float>() + b, x.data<float>() + b, 4 * static_cast<size_t>(e - b));
                         });
                       },
                       {}});
    entries.push_back({"loop z = x",
                       2 * tensor,
                       [&] {
                         per_thread([&](int64_t b, int64_t e) {
                           const float* from = x.data<float>();
                           float* to = z.data<float>();
                           for (int64_t i = b; i < e; ++i) to[i] = from[i] * 1.0001f;
                         });
                       },
                       {}});
    entries.push_back({"loop z = a x + y",
                       3 * tensor,
                       [&] {
                         per_thread([&](int64_t b, int64_t e) {
                           const float *p = x.data<float>(), *q = y.data<float>();
                           float* to = z.data<float>();
                           for (int64_t i = b; i < e; ++i) to[i] = 1.5f * p[i] + q[i];
                         });
                       },
                       {}});
    const auto add = [&](const std::string& name, Stage stage, const char* variant, double bytes, auto make) {
      auto made = make(stage, Schedule(LoopSchedule{variant, unit, 0}), Device{}, 0u);
      if (!made.ok()) {
        std::fprintf(stderr, "%s: %s\n", name.c_str(), made.error().message.c_str());
        std::exit(1);
      }
      kernels.push_back(std::move(made).value());
      workspaces.push_back(HostTensor::zeros(DType::u8, {kernels.back()->workspace_bytes() + 1}));
      const cpu::CpuKernel* kernel = kernels.back().get();
      std::byte* workspace = workspaces.back().data<std::byte>();
      const size_t count = stage.inputs.size();
      entries.push_back({name,
                         bytes,
                         [=, &x, &y, &z, &pool] {
                           std::byte* inputs[] = {x.data<std::byte>(), y.data<std::byte>(), y.data<std::byte>() + 4096};
                           std::byte* out = z.data<std::byte>();
                           kernel->run({{inputs, count}, {&out, 1}, workspace, &pool});
                         },
                         {}});
    };
    TensorDesc per_channel = last;
    per_channel.layout.strides = Dims{0, 1, 0, 0};
    using P = PointwiseOp;
    add("relu", {program(1, {{P::relu, 0}}), {last}, {last}}, "strips", 2 * tensor, cpu::make_pointwise);
    add("add", {program(2, {{P::add, 0, 1}}), {last, last}, {last}}, "strips", 3 * tensor, cpu::make_pointwise);
    add("relu(add)", {program(2, {{P::add, 0, 1}, {P::relu, 2}}), {last, last}, {last}}, "strips", 3 * tensor,
        cpu::make_pointwise);
    add("silu", {program(1, {{P::silu, 0}}), {last}, {last}}, "strips", 2 * tensor, cpu::make_pointwise);
    add("gelu", {program(1, {{P::gelu, 0}}), {last}, {last}}, "strips", 2 * tensor, cpu::make_pointwise);
    add("relu(x * scale[c] + bias[c]) nhwc",
        {program(3, {{P::mul, 0, 1}, {P::add, 3, 2}, {P::relu, 4}}), {last, per_channel, per_channel}, {last}}, "strips",
        2 * tensor, cpu::make_pointwise);
    add("x * scale[c] nchw", {program(2, {{P::mul, 0, 1}}), {first, per_channel}, {first}}, "strips", 2 * tensor,
        cpu::make_pointwise);
    add("x + nchw to nhwc", {program(2, {{P::add, 0, 1}}), {last, first}, {last}}, "strips", 3 * tensor, cpu::make_pointwise);
    const Dims one_pixel{1, channels, 1, 1}, one_channel{1, 1, pixels / 128, 128}, one_column{rows[0], 1};
    const TensorDesc pooled = dense_desc(DType::f32, one_pixel), flat = dense_desc(DType::f32, one_channel);
    const ReduceParams over_pixels{ReduceKind::mean, {2, 3}}, over_channels{ReduceKind::mean, {1}};
    add("mean over pixels nhwc", {over_pixels, {last}, {pooled}}, "strips", tensor, cpu::make_reduce);
    add("mean over pixels nchw", {over_pixels, {first}, {pooled}}, "strips", tensor, cpu::make_reduce);
    add("mean over channels nhwc", {over_channels, {last}, {flat}}, "strips", tensor, cpu::make_reduce);
    add("max over rows of 1000", {ReduceParams{ReduceKind::max, {1}}, {table}, {dense_desc(DType::f32, one_column)}}, "strips",
        tensor, cpu::make_reduce);
    add("softmax rows of 1000", {SoftmaxParams{1, 1, false}, {table}, {table}}, "rows", 2 * tensor, cpu::make_softmax);
    add("softmax rows of 64", {SoftmaxParams{1, 1, false}, {last}, {last}}, "rows", 2 * tensor, cpu::make_softmax);
    add("softmax strided 64 channels", {SoftmaxParams{1, 1, false}, {first}, {first}}, "rows", 2 * tensor, cpu::make_softmax);
    TensorDesc per_column = table;
    per_column.layout.strides = Dims{0, 1};
    NormalizeParams instance, layer;
    instance.axes = {2, 3}, layer.axes = {1};
    add("layer norm rows of 1000", {layer, {table, per_column, per_column}, {table}}, "rows", 2 * tensor, cpu::make_normalize);
    add("instance norm nhwc (3 passes)", {instance, {last, per_channel, per_channel}, {last}}, "rows", 2 * tensor,
        cpu::make_normalize);

    constexpr int kRounds = 9;
    // One thread by its own CPU time, which other programs on the machine disturb least.
    const auto now = [&] {
      timespec time{};
      clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    for (int round = -1; round < kRounds; ++round) {
      for (Entry& entry : entries) {
        const double begin = now();
        entry.run();
        const double seconds = now() - begin;
        if (round >= 0) entry.seconds.push_back(seconds);
      }
    }
    const auto rate = [](Entry& entry) {
      std::sort(entry.seconds.begin(), entry.seconds.end());
      return entry.bytes / entry.seconds[entry.seconds.size() / 2] * 1e-9;
    };
    const double yardstick = std::max(rate(entries[0]), rate(entries[2]));
    std::printf("\n%s, %d thread(s), %lld MB per tensor\n%-36s %9s %9s %9s\n", unit.c_str(), threads,
                static_cast<long long>(megabytes), "", "GB/s", "best GB/s", "% of copy");
    for (Entry& entry : entries) {
      const double median = rate(entry);
      std::printf("%-36s %9.2f %9.2f %9.0f\n", entry.name.c_str(), median, entry.bytes / entry.seconds[0] * 1e-9,
                  100 * median / yardstick);
    }
  }
  return 0;
}
