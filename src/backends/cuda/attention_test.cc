// Attention through the backend over the functional model: every schedule that the planner has for random stages, of each type,
// on operands as plans lay them out.
#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/sample_run.h"
#include "backends/self_tests/sample_testing.h"
#include "families/attention/attention.h"
#include "families/family.h"
#include "families/windows/samples.h"

namespace sparkle::cuda {
namespace {

Stage random_stage(DType type, int64_t size, std::mt19937& random) {
  const auto chance = [&](int64_t percent) { return drawn_between(1, 100, random) <= percent; };
  const auto pick = [&](int64_t low, int64_t high) { return static_cast<int64_t>(drawn_between(low, high, random)); };
  const int64_t queries = chance(20) ? 1 : pick(1, 140), keys = pick(1, 150), columns = chance(60) ? size : pick(1, size);
  AttentionParams p;
  p.scale = 1 / std::sqrt(static_cast<double>(size));
  if (chance(25)) p.softcap = 1.5;
  p.mask = chance(40), p.lengths = chance(30);
  if (chance(40)) p.right = chance(50) ? 0 : pick(0, 50);
  if (chance(20)) p.left = pick(0, 50);
  p.offset = chance(30) ? pick(0, 40) : 0, p.offset_from_length = p.lengths && chance(50);
  p.unseen_is_nan = chance(30);
  // Heads that share keys are an axis of stride 0; rows of heads lie beside each other, as one product gives them.
  const auto of_heads = [&](int64_t rows, int64_t width, bool shared) {
    TensorDesc d{type, {2, 3, rows, width}, row_major({2, rows, shared ? 1 : 3, width})};
    std::swap(d.layout.strides[1], d.layout.strides[2]);
    if (shared) d.layout.strides[1] = 0;
    return d;
  };
  const bool shared = chance(30);
  Stage stage;
  stage.inputs = {of_heads(queries, size, false), of_heads(keys, size, shared), of_heads(keys, columns, shared)};
  if (p.mask) stage.inputs.push_back(dense_desc(chance(50) ? DType::boolean : type, {2, 3, queries, keys}));
  if (p.lengths) stage.inputs.push_back(dense_desc(DType::i64, {2, 3}));
  stage.outputs = {of_heads(queries, columns, false)};
  stage.params = p;
  return stage;
}

TEST(CudaAttention, EveryScheduleIsRightOnRandomStages) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const testing::Sample sample = testing::sample();
  std::map<std::string, int> run;
  uint32_t seed = 0;
  for (const int64_t size : {8, 12, 24, 48, 64, 96, 192, 256}) {
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      std::mt19937 random(++seed);
      if (!sample.takes(seed + seed / 3)) continue;  // types in turn
      const Stage stage = random_stage(type, size, random);
      for (const Variant& variant : attention_info().variants) {
        Reason why = Reason::none;
        for (const Schedule& schedule : attention_info().schedules(stage, variant, backend->device(), why)) {
          const Status ran = run_sample(*backend, stage, schedule, 0, {});
          EXPECT_TRUE(ran.ok()) << "seed " << seed << " " << to_text(schedule) << " " << to_text(stage.params) << " "
                                << stage.inputs[0].shape.to_string() << " " << stage.inputs[2].shape.to_string() << ": "
                                << (ran.ok() ? "" : ran.error().message);
          ++run[variant_of(schedule)];
        }
      }
    }
  }
  EXPECT_GT(run["flash"], 16 / static_cast<int>(sample.share));
  EXPECT_GE(run["flash_fma"], 8 / static_cast<int>(sample.share));
}

// What blocks of queries have no kernel for stays with a block for each query.
TEST(CudaAttention, BlocksAreRefusedWhatTheyHaveNoKernelFor) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const auto refused = [&](const Stage& stage, std::string_view name) {
    Reason why = Reason::none;
    for (const Variant& variant : attention_info().variants)
      if (variant.name == name && attention_info().schedules(stage, variant, backend->device(), why).empty()) return why;
    return Reason::none;
  };
  const auto stage_of = [](DType type, int64_t depth, int64_t columns) {
    Stage stage;
    stage.params = AttentionParams{};
    stage.inputs = {dense_desc(type, {1, 70, depth}), dense_desc(type, {1, 90, depth}), dense_desc(type, {1, 90, columns})};
    stage.outputs = {dense_desc(type, {1, 70, columns})};
    return stage;
  };
  EXPECT_EQ(refused(stage_of(DType::f16, 64, 64), "flash"), Reason::none);
  EXPECT_EQ(refused(stage_of(DType::f16, 64, 264), "flash"), Reason::layout_not_served);
  EXPECT_EQ(refused(stage_of(DType::f16, 264, 64), "flash"), Reason::layout_not_served);
  EXPECT_EQ(refused(stage_of(DType::f32, 64, 64), "flash"), Reason::type_not_served);
  EXPECT_EQ(refused(stage_of(DType::f32, 64, 264), "flash_fma"), Reason::layout_not_served);
  EXPECT_EQ(refused(stage_of(DType::f16, 64, 64), "flash_fma"), Reason::type_not_served);
  Stage shown = stage_of(DType::f16, 64, 64);
  AttentionParams p;
  p.scores = ScoreOutput::softmax;
  shown.params = p;
  shown.outputs.push_back(dense_desc(DType::f16, {1, 70, 90}));
  EXPECT_EQ(refused(shown, "flash"), Reason::operator_not_served);
  // Schedules that no planner made: blocks that there are not.
  const auto made = backend->compile(stage_of(DType::f16, 64, 64), LoopSchedule{"flash", "mma-f16", 32}, 0);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().reason, Reason::layout_not_served);
}

}  // namespace
}  // namespace sparkle::cuda
