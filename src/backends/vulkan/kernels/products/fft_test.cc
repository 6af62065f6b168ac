// The Vulkan fft kernels against the family's reference: few sizes of transforms, for a software device takes seconds for a
// pipeline, and many shapes, filters, strides, dilations, groups and layouts for each.
#include <cmath>

#include "backends/vulkan/kernels/products/fft_tables.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/fft/fft.h"
#include "families/registry.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

TensorDesc map_desc(TestRandom& random, DType type, const Dims& shape, bool across, int64_t gap) {
  TensorDesc d{type, shape, {}};
  const int last = shape.size() - 1;
  std::vector<int> inwards;  // innermost first
  if (across) inwards.push_back(1);
  for (int axis = last; axis >= 2; --axis) inwards.push_back(axis);
  if (!across) inwards.push_back(1);
  inwards.push_back(0);
  d.layout = row_major(shape);
  d.layout.order = Dims{};
  for (size_t i = inwards.size(); i-- > 0;) d.layout.order.push_back(inwards[i]);
  int64_t step = 1;
  for (const int axis : inwards) {
    d.layout.strides[axis] = step;
    step = step * shape[axis] + random.between(0, gap);
  }
  d.layout.offset = random.between(0, gap);
  return d;
}

// One kind of pipelines: transforms of a size, and an epilogue.
struct Kind {
  const char* variant;
  int64_t rows, columns;
  int pairs, threads;
  bool across, constant;
  Epilogue epilogue;
  int64_t least_filter = 1;
};
Epilogue plain_epilogue() {
  Epilogue e;
  e.bias = true, e.activation = Activation::relu;
  return e;
}
Epilogue full_epilogue() {
  Epilogue e;
  e.alpha = 0.5, e.scale = e.bias = true, e.residuals_before = e.residuals_after = 1, e.activation = Activation::silu;
  return e;
}

// A window that an axis of `points` serves: filters of up to all of them, and any padding.
void random_axis(TestRandom& random, const Kind& kind, int64_t points, size_t axis, Window& w, int64_t& in, int64_t& out) {
  for (;;) {
    w.dilation[axis] = random.chance(70) ? 1 : random.between(2, 3),
    w.stride[axis] = random.chance(60) ? 1 : random.between(2, 3);
    const int64_t most = points == 1 ? 1 : std::max<int64_t>(1, points / w.dilation[axis]);
    const int64_t taps = points == 1 ? 1 : random.between(std::min(most, kind.least_filter), most);
    w.filter[axis] = random.chance(10) ? 1 : taps;
    const int64_t reach = (w.filter[axis] - 1) * w.dilation[axis] + 1;
    w.pad_begin[axis] = random.chance(10) ? -random.between(0, 2) : random.between(0, reach - 1);
    const int64_t pad_end = random.between(0, reach - 1), most_in = points == 1 ? 5 : 2 * points;
    in = random.chance(30) ? random.between(1, std::min<int64_t>(most_in, 4)) : random.between(1, most_in);
    out = (in + w.pad_begin[axis] + pad_end - reach) / w.stride[axis] + 1;
    if (in + w.pad_begin[axis] + pad_end >= reach && in + w.pad_begin[axis] > 0 && out <= 3 * points + 5) return;
  }
}

TileSchedule product_of(const Stage& stage, const Device& device) {
  for (const Variant& v : info(Family::fft).variants) {
    Reason why = Reason::none;
    if (v.name != "points") continue;
    for (const Schedule& s : info(Family::fft).schedules(stage, v, device, why))
      if (TileSchedule tile = get<FftTileSchedule>(s).product; tile.m > 0) {
        tile.m = tile.n = 32, tile.k = 16, tile.thread_m = tile.thread_n = 4, tile.subgroup = 0, tile.split = 1,
        tile.unroll = 1;
        return tile;
      }
  }
  ADD_FAILURE() << "no tile";
  return {};
}

void check(const Kind& kind, int cases, uint64_t seed, DType type = DType::f32) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    TestRandom random(seed + static_cast<uint64_t>(i));
    const bool whole = std::string_view(kind.variant) == "whole", flat = kind.rows == 1 && random.chance(60);
    FftTileSchedule schedule{kind.variant, "fma-f32", kind.rows, kind.columns, kind.pairs, kind.threads, {}};
    Stage stage;
    FftParams p;
    p.epilogue = kind.epilogue;
    int64_t n = 1, c = 1, k = 1;
    Dims x, y, w;
    for (bool supported = false; !supported;) {
      int64_t h = 1, height = 1, v = 1, width = 1;
      random_axis(random, kind, kind.rows, 1, p.window, h, height);
      random_axis(random, kind, kind.columns, 2, p.window, v, width);
      n = random.between(1, 2), p.groups = whole ? random.between(1, 11) : random.chance(60) ? 1 : random.between(2, 3);
      c = whole ? p.groups : p.groups * random.between(1, 7), k = whole ? p.groups : p.groups * random.between(1, 6);
      if (!whole && p.groups == c && p.groups == k) continue;
      // What the reference takes.
      if (static_cast<double>(n * k * height * width * p.window.taps()) * static_cast<double>(c / p.groups) > 4e6) continue;
      if (flat) p.window.filter[1] = 1, p.window.stride[1] = 1, p.window.pad_begin[1] = 0, h = height = 1;
      x = flat ? Dims{n, c, v} : Dims{n, c, h, v}, y = flat ? Dims{n, k, width} : Dims{n, k, height, width};
      w = flat ? Dims{k, c / p.groups, p.window.filter[2]} : Dims{k, c / p.groups, p.window.filter[1], p.window.filter[2]};
      stage = {p, {dense_desc(type, x), dense_desc(type, w)}, {dense_desc(type, y)}};
      supported = fft_cut(stage, schedule).ok();
    }
    if (!whole) schedule.product = product_of(stage, backend->device());
    const int64_t gap = random.chance(50) ? 0 : 3;
    stage.inputs.clear(), stage.outputs.clear();
    std::vector<TestOperand> inputs, outputs;
    const auto input = [&](const TensorDesc& d) {
      inputs.emplace_back(d);
      inputs.back().fill([&] { return random.normal(); });
      stage.inputs.push_back(d);
    };
    input(map_desc(random, type, x, kind.across, gap));
    input(dense_desc(type, w));
    for (int j = 0; j < p.epilogue.scale + p.epilogue.bias; ++j) input(dense_desc(type, {k}));
    for (int j = 0; j < p.epilogue.residuals_before + p.epilogue.residuals_after; ++j)
      input(map_desc(random, type, y, random.chance(50), gap));
    const TensorDesc out = map_desc(random, type, y, kind.across, gap);
    outputs.emplace_back(out);
    stage.outputs.push_back(out);
    auto wanted = reference_outputs(stage, inputs);
    const Status ran = run_stage(*backend, stage, schedule, inputs, outputs, kind.constant ? 2 : 0);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    // The planner's bound (src/algorithms/fft.cc), of a sum as large as most.
    double passes = 3, largest = 1e-30;
    for (const size_t at : {1, 2}) passes += std::log2(static_cast<double>(p.window.filter[at] * p.window.dilation[at]));
    for_each_index(y, [&](const Dims& at) { largest = std::max(largest, std::abs(wanted[0].at(at))); });
    const double sum = std::sqrt(static_cast<double>(c / p.groups * p.window.taps()));
    expect_close(outputs[0], wanted[0], 4e-7 * passes * std::max(1.0, sum / largest),
                 "seed " + std::to_string(seed + static_cast<uint64_t>(i)) + " x=" + x.to_string() + " y=" + y.to_string() +
                     " " + to_text(Schedule(schedule)) + " " + to_text(stage.params));
  }
}

TEST(VulkanFft, ChannelsOfOneFilter) {
  check({"whole", 12, 10, 2, 64, true, true, plain_epilogue()}, 16, 1);
  check({"whole", 64, 60, 1, 128, false, true, full_epilogue(), 31}, 5, 101);
}
TEST(VulkanFft, ChannelsOfOneFilterAlongOneAxis) { check({"whole", 1, 240, 3, 64, true, true, full_epilogue()}, 12, 201); }
TEST(VulkanFft, FiltersThatAreNoConstants) {
  check({"whole", 16, 45, 1, 64, false, false, plain_epilogue()}, 10, 301);
  check({"points", 16, 45, 1, 64, false, false, plain_epilogue()}, 10, 401);
}
TEST(VulkanFft, SumsOverChannels) { check({"points", 12, 10, 2, 64, true, true, full_epilogue()}, 16, 501); }
TEST(VulkanFft, SumsOverChannelsAlongOneAxis) { check({"points", 1, 128, 4, 64, true, true, plain_epilogue()}, 12, 601); }

// Tensors of 16 bits in the same kernels.
TEST(VulkanFftFp16, ChannelsOfOneFilter) {
  SPARKLE_NEEDS_FP16();
  check({"whole", 12, 10, 2, 64, true, true, plain_epilogue()}, 10, 1001, DType::f16);
  check({"whole", 16, 45, 1, 64, false, false, full_epilogue()}, 8, 1101, DType::f16);
}
TEST(VulkanFftFp16, SumsOverChannels) {
  SPARKLE_NEEDS_FP16();
  check({"points", 12, 10, 2, 64, true, true, full_epilogue()}, 10, 1201, DType::f16);
  check({"points", 16, 45, 1, 64, false, false, plain_epilogue()}, 8, 1301, DType::f16);
}

// Sizes that no shader is written for, and groups that a variant does not support.
TEST(VulkanFft, ErrorsNameTheReason) {
  SPARKLE_NEEDS_VULKAN(backend);
  FftParams p;
  p.window.filter = {1, 9, 9};
  Stage stage{p,
              {dense_desc(DType::f32, {1, 8, 16, 16}), dense_desc(DType::f32, {8, 8, 9, 9})},
              {dense_desc(DType::f32, {1, 8, 8, 8})}};
  FftTileSchedule s{"points", "fma-f32", 16, 16, 1, 64, {}};
  s.product = product_of(stage, backend->device());
  const auto reason = [&] {
    const auto made = backend->compile(stage, s, 0);
    return made.ok() ? Reason::none : made.error().reason;
  };
  EXPECT_EQ(reason(), Reason::none);
  s.columns = 14;
  EXPECT_EQ(reason(), Reason::filter_not_served);
  s.columns = 8;  // less than the filter
  EXPECT_EQ(reason(), Reason::filter_not_served);
  s.columns = 16, s.variant = "whole";
  EXPECT_EQ(reason(), Reason::groups_not_served);
  s.variant = "tiles";
  EXPECT_EQ(reason(), Reason::backend_lacks_variant);
  s.variant = "points";
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(reason(), Reason::type_not_served);
}

}  // namespace
}  // namespace sparkle::vulkan
