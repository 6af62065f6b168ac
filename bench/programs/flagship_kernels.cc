// One run of a kernel on a small layer, for tools that count what it executes: everything that a count depends on beside the
// kernel is fixed here. The schedule is the first that its family has for the variant on the machine of a device file, and
// counted_run() is nothing but the run itself. Usage: flagship_kernels DEVICE.json [NAME]; without a name it lists them.
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "device/device_json.h"
#include "families/depthwise/depthwise.h"
#include "families/direct/direct.h"
#include "families/gemm/gemm.h"
#include "families/grouped/grouped.h"
#include "families/normalize/normalize.h"
#include "families/pointwise/pointwise.h"
#include "families/registry.h"
#include "families/softmax/softmax.h"
#include "families/winograd/winograd.h"

namespace {
using namespace sparkle;

struct Shape {
  int64_t c, k, size, filter = 1, stride = 1, groups = 1;
};

Window window_of(const Shape& s) {
  const int64_t pad = s.filter / 2;
  return {{1, s.filter, s.filter}, {1, s.stride, s.stride}, {1, 1, 1}, {0, pad, pad}, {0, pad, pad}};
}

TensorDesc map_of(int64_t channels, int64_t size) {
  const Dims shape{1, channels, size, size};
  return {DType::f32, shape, channels_last(shape)};
}

Epilogue relu_behind_bias() {
  Epilogue e;
  e.bias = true, e.activation = Activation::relu;
  return e;
}

template <class Params>
Stage convolution(Params p, const Shape& s) {
  p.window = window_of(s), p.epilogue = relu_behind_bias();
  if constexpr (requires { p.groups; }) p.groups = s.groups;
  const int64_t out = (s.size + 2 * (s.filter / 2) - s.filter) / s.stride + 1;
  return {
      p,
      {map_of(s.c, s.size), dense_desc(DType::f32, {s.k, s.c / s.groups, s.filter, s.filter}), dense_desc(DType::f32, {s.k})},
      {map_of(s.k, out)}};
}

Stage depthwise(const Shape& s) { return convolution(DepthwiseParams{}, {s.c, s.c, s.size, s.filter, s.stride, s.c}); }

Stage winograd(int tile, const Shape& s) {
  WinogradParams p;
  p.tile = tile;
  return convolution(p, s);
}

Stage function(PointwiseOp op) {
  const TensorDesc x = dense_desc(DType::f32, {64, 1000});
  return {PointwiseParams{1, {{op, 0}}}, {x}, {x}};
}

Stage normalization() {
  const TensorDesc x = dense_desc(DType::f32, {64, 384}), each = dense_desc(DType::f32, {384});
  NormalizeParams p;
  p.axes = {1};
  return {p, {x, each, each}, {x}};
}

struct Counted {
  const char* name;
  Stage stage;
  const char* variant;  // on AVX2; a family's default where it has one of that name alone
};

std::vector<Counted> kernels() {
  const TensorDesc rows = dense_desc(DType::f32, {64, 196});
  return {
      {"gemm_3x3", convolution(GemmParams{}, {64, 64, 14, 3}), "tile6x2"},
      {"gemm_3x3_stride_2", convolution(GemmParams{}, {64, 96, 28, 3, 2}), "tile6x2"},
      {"gemm_1x1", convolution(GemmParams{}, {96, 160, 14}), "tile6x2"},
      {"gemm_1x1_odd", convolution(GemmParams{}, {115, 90, 14}), "tile6x2"},
      {"gemm_dots", convolution(GemmParams{}, {256, 2, 28}), "row_dots"},
      {"direct_maps", convolution(DirectParams{}, {64, 256, 14}), "maps"},
      {"direct_first", convolution(DirectParams{}, {3, 32, 56, 3, 2}), "maps"},
      {"winograd4", winograd(4, {64, 64, 14, 3}), "strip6x2"},
      {"winograd6", winograd(6, {32, 64, 28, 3}), "strip6x2"},
      {"depthwise_3x3", depthwise({96, 96, 28, 3}), "tile1x7"},
      {"depthwise_3x3_stride_2", depthwise({96, 96, 28, 3, 2}), "tile1x7"},
      {"depthwise_7x7", depthwise({96, 96, 14, 7}), "window"},
      {"grouped", convolution(GroupedParams{}, {128, 128, 14, 3, 1, 32}), "spread"},
      {"gelu", function(PointwiseOp::gelu), "strips"},
      {"exp", function(PointwiseOp::exp), "strips"},
      {"softmax_rows", {SoftmaxParams{1, 1}, {rows}, {rows}}, "rows"},
      {"normalize_rows", normalization(), "rows"},
  };
}

}  // namespace

// What is counted; a name that tools find.
extern "C" [[gnu::noinline]] void counted_run(const cpu::CpuKernel& kernel, const cpu::CpuLaunch& launch) {
  kernel.run(launch);
}

int main(int argc, char** argv) {
  const std::vector<Counted> all = kernels();
  if (argc < 3) {
    for (const Counted& c : all) std::puts(c.name);
    return argc < 2 ? 2 : 0;
  }
  const auto device = load_device(argv[1]);
  if (!device.ok()) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 2;
  for (const Counted& c : all) {
    if (std::string(argv[2]) != c.name) continue;
    const FamilyInfo& family = info(c.stage.family());
    for (const Variant& variant : family.variants) {
      if (variant.name != c.variant) continue;
      Reason why{};
      const std::vector<Schedule> schedules = family.schedules(c.stage, variant, *device, why);
      if (schedules.empty()) return std::fprintf(stderr, "%s: no schedule: %s\n", c.name, sentence_of(why).data()), 1;
      auto made = cpu::factory_of(c.stage.family(), variant.name)(c.stage, schedules[0], *device, 2);
      if (!made.ok()) return std::fprintf(stderr, "%s: %s\n", c.name, made.error().message.c_str()), 1;
      const cpu::CpuKernel& kernel = **made;
      InlineExecutor executor;
      std::mt19937 random(1);
      std::normal_distribution<float> normal;
      std::vector<HostTensor> tensors, packed;
      std::vector<std::byte*> inputs;
      for (size_t i = 0; i < c.stage.inputs.size(); ++i) {
        tensors.push_back(HostTensor::zeros(DType::f32, c.stage.inputs[i].shape));
        for (int64_t k = 0; k < tensors[i].elements(); ++k) tensors[i].data<float>()[k] = normal(random);
        inputs.push_back(tensors[i].bytes.get());
        const int64_t bytes = i == 1 ? kernel.packed_bytes(1) : 0;
        if (bytes == 0) continue;
        packed.push_back(HostTensor::zeros(DType::f32, Dims{(bytes + 3) / 4}));
        kernel.pack(1, inputs[i], packed.back().bytes.get(), executor);
        inputs[i] = packed.back().bytes.get();
      }
      const HostTensor y = HostTensor::zeros(DType::f32, c.stage.outputs[0].shape);
      const HostTensor workspace = HostTensor::zeros(DType::f32, Dims{kernel.workspace_bytes() / 4 + 16});
      std::byte* output = y.bytes.get();
      const cpu::CpuLaunch launch{inputs, {&output, 1}, workspace.bytes.get(), &executor};
      counted_run(kernel, launch);
      std::puts(to_text(schedules[0]).c_str());
      return 0;
    }
  }
  return std::fprintf(stderr, "There is no kernel '%s' or no such variant; without a name this lists them.\n", argv[2]), 2;
}
