// The Vulkan winograd kernels against the family's reference: random sizes, paddings, layouts and epilogues. Few kinds of
// pipelines, many shapes: software devices take a second for a pipeline.
#include "backends/vulkan/vulkan_testing.h"
#include "families/registry.h"
#include "families/loops/tile_schedule.h"
#include "families/winograd/winograd.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

TensorDesc map_desc(TestRandom& random, DType type, const Dims& shape, int64_t gap) {
  TensorDesc d{type, shape, {}};
  d.layout.order = {0, 2, 3, 1};
  d.layout.strides = Dims::filled(4, 0);
  int64_t step = 1;
  for (const int axis : {1, 3, 2, 0}) {
    d.layout.strides[axis] = step;
    step = step * shape[axis] + random.between(0, gap);
  }
  d.layout.offset = random.between(0, gap);
  return d;
}

void check(int tile, int cases, uint64_t seed, DType type = DType::f32) {
  SPARKLE_NEEDS_VULKAN(backend);
  const FamilyInfo& family = info(Family::winograd);
  const auto row =
      std::find_if(family.variants.begin(), family.variants.end(), [](const Variant& v) { return v.name == "points"; });
  ASSERT_NE(row, family.variants.end());
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    TestRandom random(seed + static_cast<uint64_t>(i));
    const int kind = i % 2;
    const int64_t step = kind == 0 ? 4 : 1, gap = kind == 0 ? 0 : 3;
    const int64_t n = random.between(1, 2), c = step * random.between(1, 12), k = step * random.between(1, 12);
    const int64_t h = random.between(1, 13), w = random.between(1, 13);
    WinogradParams p;
    p.tile = tile;
    p.window.filter = {1, 3, 3};
    for (const size_t at : {1, 2}) p.window.pad_begin[at] = random.between(-1, 3);
    p.window.pad_begin[1] = h == 1 ? 1 : p.window.pad_begin[1];
    Stage stage;
    std::vector<TestOperand> inputs, outputs;
    const auto input = [&](const TensorDesc& d) {
      inputs.emplace_back(d);
      inputs.back().fill([&] { return random.normal(); });
      stage.inputs.push_back(d);
    };
    const Dims y{n, k, random.between(1, 11), random.between(1, 11)};
    input(map_desc(random, type, {n, c, h, w}, gap));
    input(dense_desc(type, {k, c, 3, 3}));
    p.epilogue.bias = true;
    p.epilogue.activation = kind == 0 ? Activation::relu : Activation::silu;
    p.epilogue.residuals_before = kind;
    input(dense_desc(type, {k}));
    if (kind == 1) input(map_desc(random, type, y, gap));
    const TensorDesc out = map_desc(random, type, y, gap);
    outputs.emplace_back(out);
    stage.outputs.push_back(out);
    stage.params = p;
    Reason why = Reason::none;
    const auto schedules = family.schedules(stage, *row, backend->device(), why);
    ASSERT_FALSE(schedules.empty()) << code_of(why);
    auto schedule = get<TileSchedule>(schedules.back());
    for (const Schedule& s : schedules)
      if (const auto& t = get<TileSchedule>(s); t.m * t.n < schedule.m * schedule.n) schedule = t;
    schedule.unroll = 1, schedule.subgroup = 0;
    if (random.chance(25)) schedule.split = 2;
    auto wanted = reference_outputs(stage, inputs);
    const Status ran = run_stage(*backend, stage, schedule, inputs, outputs, random.chance(60) ? 2 : 0);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    // The planner's bound for this tile (src/algorithms/winograd.cc), of which small outputs may have more.
    const double bound = (tile == 2 ? 8e-8 : 3e-7) * std::sqrt(static_cast<double>(c));
    expect_close(outputs[0], wanted[0], 4 * (bound + 4e-7),
                 "seed " + std::to_string(seed + static_cast<uint64_t>(i)) + " " + to_text(Schedule(schedule)) + " " +
                     to_text(stage.params));
  }
}

TEST(VulkanWinograd, TilesOfTwo) { check(2, 16, 1); }
TEST(VulkanWinograd, TilesOfFour) { check(4, 16, 101); }
TEST(VulkanWinograd, Fp16AreTransformedInFullPrecision) {
  SPARKLE_NEEDS_FP16();
  check(2, 12, 201, DType::f16);
  check(4, 12, 301, DType::f16);
}

}  // namespace
}  // namespace sparkle::vulkan
