// The Vulkan attention kernels against the family's reference: random shapes, layouts, masks, windows, lengths, score outputs.
#include "backends/vulkan/vulkan_testing.h"
#include "families/attention/attention.h"
#include "families/family.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

void check(DType type, uint64_t first, uint64_t last, bool split = false) {
  SPARKLE_NEEDS_VULKAN(backend);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (uint64_t seed = first; seed <= last && !::testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    Dims batch;
    for (int64_t i = random.between(0, 3); i > 0; --i) batch.push_back(random.between(1, 3));
    const int64_t queries = random.chance(25) ? 1 : random.between(1, split ? 3 : 90);
    const int64_t keys = random.chance(5) ? 0 : random.between(1, split ? 700 : 110);
    const int64_t size = random.between(1, 80), columns = random.between(1, 150);
    const auto shaped = [&](int64_t rows, int64_t length) {
      Dims shape = batch;
      shape.push_back(rows), shape.push_back(length);
      return shape;
    };
    AttentionParams p;
    p.scale = 1 / std::sqrt(static_cast<double>(size));
    p.softcap = random.chance(25) ? 2.5 : 0;
    p.mask = random.chance(45);
    p.lengths = random.chance(30);
    if (random.chance(40)) p.right = random.between(0, 20);
    if (random.chance(30)) p.left = random.between(0, 40);
    p.offset = random.chance(30) ? random.between(-5, 40) : 0;
    p.offset_from_length = random.chance(20);
    p.scores = static_cast<ScoreOutput>(split || random.chance(50) ? 0 : random.between(1, 4));
    Stage stage;
    std::vector<TestOperand> inputs, outputs;
    // Heads may share keys and values: batch axes of stride 0.
    const auto input = [&](DType element, const Dims& shape, int matrix_axes, auto&& value) {
      TensorDesc d{element, shape, random.layout(shape)};
      for (int axis = 0; axis < shape.size() - matrix_axes; ++axis)
        if (random.chance(20)) d.layout.strides[axis] = 0;
      stage.inputs.push_back(d);
      inputs.emplace_back(d);
      inputs.back().fill(value);
    };
    const auto normal = [&] { return random.normal(); };
    input(type, shaped(queries, size), 2, normal);
    input(type, shaped(keys, size), 2, normal);
    input(type, shaped(keys, columns), 2, normal);
    if (p.mask) {
      const Dims shape = shaped(queries, std::max<int64_t>(0, keys - (random.chance(30) ? random.between(0, 5) : 0)));
      if (random.chance(50)) input(DType::boolean, shape, 2, [&] { return random.chance(60) ? 1.0 : 0.0; });
      else input(type, shape, 2, [&] { return random.chance(30) ? -kInfinity : random.normal(); });
    }
    if (p.lengths) input(DType::i64, batch, 0, [&] { return static_cast<double>(random.between(-3, keys + 5)); });
    const auto output = [&](const Dims& shape) {
      stage.outputs.push_back({type, shape, random.layout(shape)});
      outputs.emplace_back(stage.outputs.back());
    };
    output(shaped(queries, columns));
    if (p.scores != ScoreOutput::none) output(shaped(queries, keys));
    stage.params = p;
    auto wanted = reference_outputs(stage, inputs);
    const LoopSchedule schedule{split ? "split" : "blocks", "fma-f32", split ? 64 * random.between(1, 3) : 0};
    const Status ran = run_stage(*backend, stage, schedule, inputs, outputs, 0);
    const std::string note = "seed " + std::to_string(seed) + " " + to_text(stage.params) + " q " +
                             shaped(queries, size).to_string() + " k " + shaped(keys, size).to_string();
    ASSERT_TRUE(ran.ok()) << ran.error().message << " " << note;
    expect_close(outputs[0], wanted[0], 2e-6, note);
    if (p.scores != ScoreOutput::none) expect_close(outputs[1], wanted[1], 2e-6, "scores, " + note);
  }
}

TEST(VulkanAttention, MatchesTheReference) { check(DType::f32, 1, 70); }
TEST(VulkanAttention, Fp16AreAddedInFullPrecision) {
  SPARKLE_NEEDS_FP16();
  check(DType::f16, 101, 140);
  check(DType::f16, 301, 330, true);
}
TEST(VulkanAttention, KeysOfFewQueriesAreSplit) { check(DType::f32, 201, 280, true); }

TEST(VulkanAttention, SchedulesSayWhatTheKernelServes) {
  SPARKLE_NEEDS_VULKAN(backend);
  const FamilyInfo& family = attention_info();
  const auto row =
      std::find_if(family.variants.begin(), family.variants.end(), [](const Variant& v) { return v.name == "blocks"; });
  Stage stage;
  stage.params = AttentionParams{};
  for (int i = 0; i < 3; ++i) stage.inputs.push_back(dense_desc(DType::f32, {2, 4, 8}));
  stage.outputs.push_back(dense_desc(DType::f32, {2, 4, 8}));
  Reason why = Reason::none;
  EXPECT_EQ(family.schedules(stage, *row, backend->device(), why).size(), 1u);
  stage.inputs[1].dtype = DType::f16;  // of several types
  EXPECT_TRUE(family.schedules(stage, *row, backend->device(), why).empty());
  EXPECT_EQ(why, Reason::type_not_served);
  EXPECT_EQ(backend->compile(stage, LoopSchedule{"blocks", "fma-f32", 0}, 0).error().reason, Reason::type_not_served);
}

// One query over many keys is cut; many queries share what they read; scores are given by blocks alone.
TEST(VulkanAttention, OneQueryIsSplitOverItsKeys) {
  SPARKLE_NEEDS_VULKAN(backend);
  const FamilyInfo& family = attention_info();
  const auto row =
      std::find_if(family.variants.begin(), family.variants.end(), [](const Variant& v) { return v.name == "split"; });
  const auto schedules = [&](int64_t queries, int64_t keys, ScoreOutput scores) {
    Stage stage;
    AttentionParams p;
    p.scores = scores;
    stage.params = p;
    for (const int64_t rows : {queries, keys, keys}) stage.inputs.push_back(dense_desc(DType::f32, {8, rows, 64}));
    stage.outputs.push_back(dense_desc(DType::f32, {8, queries, 64}));
    if (scores != ScoreOutput::none) stage.outputs.push_back(dense_desc(DType::f32, {8, queries, keys}));
    Reason why = Reason::none;
    return family.schedules(stage, *row, backend->device(), why);
  };
  const auto one = schedules(1, 4096, ScoreOutput::none);
  ASSERT_EQ(one.size(), 1u);
  const int64_t keys = get<LoopSchedule>(one[0]).grain;
  EXPECT_TRUE(keys > 0 && keys % 64 == 0 && keys < 4096) << keys;
  EXPECT_TRUE(schedules(64, 4096, ScoreOutput::none).empty());
  EXPECT_TRUE(schedules(1, 100, ScoreOutput::none).empty());
  EXPECT_TRUE(schedules(1, 4096, ScoreOutput::raw).empty());
}

}  // namespace
}  // namespace sparkle::vulkan
