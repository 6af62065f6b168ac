// Speed of the depthwise and pool kernels on layers of real networks: share of the FMA peak probed around each slot and bytes
// of input and output per second, one thread, warm, by CPU time. Bias and a clip to [0,6] are fused into the convolutions.
// Flops are nominal: padding taps that are skipped count, so small maps can exceed 100 %. A pool's steps count as one flop
// each. Usage: depthwise_layers [TEXT in the layer's name] [unit] [slots] [columns]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "families/depthwise/depthwise.h"
#include "families/pool/pool.h"
#include "fma_peak.h"

namespace {
using namespace sparkle;

struct Layer {
  const char* name;
  int64_t c, size, filter, stride, dilation = 1;
  bool pool = false;
};

constexpr Layer kLayers[] = {
    {"mobilenetv2 112x112x32", 32, 112, 3, 1},
    {"mobilenetv2 112x112x96 /2", 96, 112, 3, 2},
    {"mobilenetv2 56x56x144", 144, 56, 3, 1},
    {"mobilenetv2 56x56x144 /2", 144, 56, 3, 2},
    {"mobilenetv2 28x28x192", 192, 28, 3, 1},
    {"mobilenetv2 28x28x192 /2", 192, 28, 3, 2},
    {"mobilenetv2 14x14x384", 384, 14, 3, 1},
    {"mobilenetv2 14x14x576", 576, 14, 3, 1},
    {"mobilenetv2 14x14x576 /2", 576, 14, 3, 2},
    {"mobilenetv2 7x7x960", 960, 7, 3, 1},
    {"yolox-nano 208x208x16 /2", 16, 208, 3, 2},
    {"yolox-nano 104x104x16", 16, 104, 3, 1},
    {"yolox-nano 52x52x32", 32, 52, 3, 1},
    {"yolox-nano 26x26x64", 64, 26, 3, 1},
    {"yolox-nano 13x13x128", 128, 13, 3, 1},
    {"5x5 56x56x72 /2", 72, 56, 5, 2},
    {"5x5 28x28x120", 120, 28, 5, 1},
    {"5x5 14x14x480", 480, 14, 5, 1},
    {"5x5 14x14x672 /2", 672, 14, 5, 2},
    {"5x5 7x7x960", 960, 7, 5, 1},
    {"7x7 14x14x384", 384, 14, 7, 1},
    {"dilated by 2 33x33x384", 384, 33, 3, 1, 2},
    {"dilated by 12 33x33x256", 256, 33, 3, 1, 12},
    {"maxpool 3x3/2 112x112x64", 64, 112, 3, 2, 1, true},
    {"maxpool 2x2/2 112x112x64", 64, 112, 2, 2, 1, true},
    {"maxpool 5x5 20x20x256", 256, 20, 5, 1, 1, true},
    {"maxpool 9x9 20x20x256", 256, 20, 9, 1, 1, true},
    {"maxpool 13x13 20x20x256", 256, 20, 13, 1, 1, true},
    {"maxpool 13x13 13x13x128", 128, 13, 13, 1, 1, true},
};

Stage stage_of(const Layer& l) {
  const int64_t reach = (l.filter - 1) * l.dilation + 1, pad = l.filter == 2 ? 0 : reach / 2;
  const int64_t out = (l.size + 2 * pad - reach) / l.stride + 1;
  const Dims xs{1, l.c, l.size, l.size}, ys{1, l.c, out, out};
  const TensorDesc x{DType::f32, xs, channels_last(xs)}, y{DType::f32, ys, channels_last(ys)};
  const Window window{
      {1, l.filter, l.filter}, {1, l.stride, l.stride}, {1, l.dilation, l.dilation}, {0, pad, pad}, {0, pad, pad}};
  if (l.pool) return {PoolParams{PoolKind::max, window}, {x}, {y}};
  DepthwiseParams p;
  p.window = window;
  p.epilogue.bias = true, p.epilogue.activation = Activation::clip, p.epilogue.b = 6;
  return {p, {x, dense_desc(DType::f32, {l.c, 1, l.filter, l.filter}), dense_desc(DType::f32, {l.c})}, {y}};
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

struct Measured {
  double share = 0, seconds = 0;
};

// Slots of about a millisecond between two probes of the peak; slots whose probes differ by more than 4 % are left out.
Measured measure(const cpu::CpuKernel& kernel, const cpu::CpuLaunch& launch, double flops, bool wide, int slots) {
  for (int i = 0; i < 3; ++i) kernel.run(launch);
  double begin = bench::thread_seconds();
  kernel.run(launch);
  const int repeats = std::max(1, static_cast<int>(1e-3 / std::max(bench::thread_seconds() - begin, 1e-7)));
  std::vector<double> shares, times;
  for (int slot = 0, tried = 0; slot < slots && tried < 4 * slots; ++tried) {
    const double before = bench::fma_peak(wide);
    begin = bench::thread_seconds();
    for (int i = 0; i < repeats; ++i) kernel.run(launch);
    const double seconds = (bench::thread_seconds() - begin) / repeats;
    const double after = bench::fma_peak(wide);
    if (std::abs(before - after) > 0.04 * before) continue;
    ++slot;
    shares.push_back(flops / seconds / (before + after) * 2), times.push_back(seconds);
  }
  return {median(shares), median(times)};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string filter = argc > 1 ? argv[1] : "", unit = argc > 2 ? argv[2] : "avx512";
  const int slots = argc > 3 ? std::atoi(argv[3]) : 15, columns = argc > 4 ? std::atoi(argv[4]) : 7;
  InlineExecutor executor;
  std::printf("%-28s %-10s %8s %8s %8s\n", "layer", "variant", "% peak", "GB/s", "us");
  for (const Layer& layer : kLayers) {
    if (std::string(layer.name).find(filter) == std::string::npos) continue;
    const Stage stage = stage_of(layer);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<HostTensor> tensors;
    double bytes = static_cast<double>(stage.outputs[0].bytes());
    for (const TensorDesc& desc : stage.inputs) {
      tensors.push_back(HostTensor::zeros(DType::f32, desc.shape));
      for (int64_t i = 0; i < desc.elements(); ++i) tensors.back().data<float>()[i] = normal(random);
      bytes += static_cast<double>(desc.bytes());
    }
    const HostTensor y = HostTensor::zeros(DType::f32, stage.outputs[0].shape);
    const double flops = (layer.pool ? 1.0 : 2.0) * static_cast<double>(y.elements() * layer.filter * layer.filter);
    for (const char* variant : {"tile1x7", "tile2x7", "window", "separable"}) {
      Schedule schedule = LoopSchedule{variant, unit, 0};
      if (!layer.pool) schedule = DepthwiseSchedule{variant, unit, variant[4] == '2' ? 2 : 1, columns, 0};
      auto made = layer.pool ? cpu::make_pool(stage, schedule, Device{}, 0) : cpu::make_depthwise(stage, schedule, Device{}, 2);
      if (!made.ok()) continue;
      const cpu::CpuKernel& kernel = **made;
      const HostTensor packed = HostTensor::zeros(DType::f32, Dims{kernel.packed_bytes(1) / 4});
      const HostTensor workspace = HostTensor::zeros(DType::f32, Dims{kernel.workspace_bytes() / 4});
      std::vector<std::byte*> inputs;
      for (const HostTensor& t : tensors) inputs.push_back(t.bytes.get());
      if (!layer.pool) {
        kernel.pack(1, inputs[1], packed.bytes.get(), executor);
        inputs[1] = packed.bytes.get();
      }
      std::byte* output = y.bytes.get();
      const Measured m =
          measure(kernel, {inputs, {&output, 1}, workspace.bytes.get(), &executor}, flops, unit == "avx512", slots);
      std::printf("%-28s %-10s %8.1f %8.1f %8.1f\n", layer.name, variant, 100 * m.share, bytes / m.seconds * 1e-9,
                  1e6 * m.seconds);
    }
  }
  return 0;
}
