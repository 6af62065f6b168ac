// One run of a kernel on a small layer, for tools that count what it executes: everything that a count depends on beside the
// kernel is fixed here. The schedule is the first that its family has for the variant on the machine of a device file, and
// counted_run() is nothing but the run itself. Usage: flagship_kernels DEVICE.json [NAME]; without a name it lists them.
#include <cstdio>
#include <string>
#include <vector>

#include "backends/cpu/small_layers.h"
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
using cpu::convolution;
using cpu::SmallLayer;

Stage depthwise(const SmallLayer& s) { return convolution(DepthwiseParams{}, {s.c, s.c, s.size, s.filter, s.stride, s.c}); }

Stage winograd(int tile, const SmallLayer& s) {
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
      cpu::KernelInMemory kernel(c.stage, std::move(*made));
      counted_run(kernel.kernel(), kernel.launch());
      std::puts(to_text(schedules[0]).c_str());
      return 0;
    }
  }
  return std::fprintf(stderr, "There is no kernel '%s' or no such variant; without a name this lists them.\n", argv[2]), 2;
}
