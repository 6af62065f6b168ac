// Trials of element-wise programs, products and rows on any types, of the quantize family and of pools that tell positions:
// good kernels pass, kernels that do nothing are banned.
#include "backends/vulkan/trials/trial.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/pointwise/arithmetic.h"
#include "families/pool/pool.h"
#include "families/quantize/quantize.h"
#include "families/reduce/reduce.h"
#include "families/softmax/softmax.h"

namespace sparkle::vulkan {
namespace {

using enum PointwiseOp;

Trial program(std::vector<PointwiseInstruction> steps, std::vector<DType> inputs, DType output) {
  return {LoopSchedule{"printed", "fma-f32", 0},
          PointwiseParams{static_cast<int>(inputs.size()), std::move(steps)},
          std::move(inputs),
          {output}};
}
Trial cast(DType from, DType to) { return program({{}}, {from}, to); }

std::vector<Trial> programs() {
  constexpr DType kF = DType::f32, kHalf = DType::f16, kByte = DType::u8, kTruth = DType::boolean;
  return {cast(kF, DType::i32),
          cast(kF, kTruth),
          cast(DType::i64, kF),
          cast(DType::i8, kF),
          cast(DType::i64, DType::i16),
          cast(kTruth, DType::i64),
          cast(kHalf, kF),
          cast(kF, kHalf),
          cast(kF, DType::bf16),
          cast(DType::f64, kF),
          cast(DType::i64, DType::f64),
          cast(kF, DType::f8e4m3fn),
          cast(DType::i4, kF),
          program({{exp, 0, 0, 0, 0, 0}, {add, 2, 1, 0, 0, 0}}, {DType::f64, DType::f64}, DType::f64),
          program({{add, 0, 1, 0, 0, 0}}, {DType::i32, DType::i32}, DType::i32),
          program({{mul, 0, 1, 0, 0, 0}, {div, 2, 1, 0, 0, 0}, {clip, 3, 0, 0, -5, 7}}, {DType::i64, DType::i64}, DType::i64),
          program({{less, 0, 1, 0, 0, 0}}, {kF, kF}, kTruth),
          program({{equal, 0, 1, 0, 0, 0}}, {DType::i64, DType::i64}, kTruth),
          program({{select, 0, 1, 2, 0, 0}}, {kTruth, kF, kF}, kF),
          program({{sigmoid, 0, 0, 0, 0, 0}, {mul, 1, 2, 0, 0, 0}}, {kHalf, kF}, kHalf),
          program({{affine, 0, 0, 0, 0.25, 1.5}}, {kByte}, kF),
          program({{affine, 0, 0, 0, 40, 100}}, {kF}, kByte),
          program({{exp, 0, 0, 0, 0, 0}, {greater, 2, 1, 0, 0, 0}}, {kF, kF}, kTruth)};
}

std::vector<Trial> quantized() {
  constexpr DType kF = DType::f32, kHalf = DType::f16, kU = DType::u8, kI = DType::i8;
  const auto of = [](QuantizeKind kind, std::vector<DType> inputs, std::vector<DType> outputs, int64_t block = 0) {
    QuantizeParams p;
    p.kind = kind, p.block = block, p.axis = block > 0 ? 3 : 0;
    return Trial{LoopSchedule{"elements", "fma-f32", 0}, p, std::move(inputs), std::move(outputs)};
  };
  using enum QuantizeKind;
  return {of(quantize, {kF, kF, kU}, {kU}),
          of(quantize, {kF, kF, DType::i16}, {DType::i16}),
          of(quantize, {kF, kF, kI}, {kI}, 64),
          of(quantize, {kHalf, kHalf, kI}, {kI}),
          of(dequantize, {kI, kF, kI}, {kF}),
          of(dequantize, {kU, kF, kU}, {kF}, 2),
          of(dequantize, {kU, kHalf, kU}, {kHalf}),
          of(dynamic, {kF}, {kU, kF, kU}),
          of(QuantizeKind::add, {kU, kF, kU, kI, kF, kI, kF, kU}, {kU}),
          of(average, {kI, kF, kI, kF, kI}, {kI}),
          of(factor, {kF, kF, kF}, {kF}),
          of(factor, {kHalf, kHalf, kHalf}, {kHalf}),
          of(quantize, {kF, kF, DType::i4}, {DType::i4}),
          of(dequantize, {DType::u2, kF, DType::u2}, {kF})};
}

std::vector<Trial> products() {
  std::vector<Trial> trials;
  TileSchedule tile{kOwnType, "fma-f32"};
  tile.m = tile.n = 32, tile.k = 16, tile.thread_m = tile.thread_n = 2, tile.pad = 1;
  GemmParams dense, window;
  dense.loader = Loader::dense, dense.epilogue.bias = true;
  window.window.filter = {1, 3, 3}, window.window.pad_begin = {0, 1, 1}, window.groups = 2;
  for (const DType type : {DType::f64, DType::i32, DType::u32, DType::i64, DType::u64})
    trials.push_back({tile, dense, {type, type, type}, {type}});
  dense.epilogue.alpha = 0.375;
  for (const DType type : {DType::u32, DType::i64}) trials.push_back({tile, dense, {type, type, type}, {type}});
  trials.push_back({tile, window, {DType::f64, DType::f64}, {DType::f64}});
  return trials;
}

std::vector<Trial> positions() {
  PoolParams p;
  p.window.filter = {1, 3, 3}, p.window.stride = {1, 2, 1}, p.window.pad_begin = p.window.pad_end = {0, 1, 1};
  const LoopSchedule naive{"naive", "fma-f32", 0};
  return {{naive, p, {DType::f32}, {DType::f32, DType::i64}},
          {naive, p, {DType::f16}, {DType::f16, DType::i64}},
          {naive, p, {DType::f64}, {DType::f64, DType::i64}}};
}

bool uses(const Trial& t, DType type) {
  return std::find(t.inputs.begin(), t.inputs.end(), type) != t.inputs.end() ||
         std::find(t.outputs.begin(), t.outputs.end(), type) != t.outputs.end();
}

bool has_types(VulkanBackend& backend, const Trial& t) {
  const Features& f = backend.context().features();
  return (f.f16 || !uses(t, DType::f16)) && (f.f64 || !uses(t, DType::f64));
}

// Each passes, has run, and reads back from its text.
void expect_good(const std::vector<Trial>& trials) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const Trial& t : trials) {
    if (!has_types(*backend, t)) continue;
    const auto before = backend->counters().submissions;
    const Status ran = run_trial(*backend, t, std::chrono::minutes(1));
    EXPECT_TRUE(ran.ok()) << t.to_text() << ": " << (ran.ok() ? "" : ran.error().message);
    EXPECT_GE(backend->counters().submissions, before + 4) << t.to_text();
    const auto back = Trial::from_text(t.to_text());
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->to_text(), t.to_text());
  }
}
// With kernels that do nothing each is found and told.
void expect_found(const std::vector<Trial>& trials) {
  ContextOptions options;
  options.cache = false;
  for (const Trial& t : trials) {
    std::string why;
    const auto backend = test_backend(options, why, {.nothing = t.variant()});
    if (!backend) GTEST_SKIP() << why;
    if (!has_types(*backend, t)) continue;
    ASSERT_TRUE(backend->try_lines(t.to_text() + "\n").ok());
    ASSERT_EQ(backend->findings().size(), 1u) << t.to_text();
    EXPECT_TRUE(backend->findings()[0].starts_with(t.variant() + ": wrong: it gave")) << backend->findings()[0];
  }
}

std::vector<Trial> rows() {
  std::vector<Trial> trials;
  const auto of = [&](ReduceKind kind, DType type) {
    trials.push_back({LoopSchedule{"rows_gpu", "fma-f32", 0}, ReduceParams{kind, {}}, {type}, {type}});
  };
  for (const DType type : {DType::f32, DType::i8, DType::u16, DType::i32, DType::u64, DType::f64}) of(ReduceKind::sum, type);
  for (const DType type : {DType::boolean, DType::u8, DType::i64}) of(ReduceKind::max, type);
  of(ReduceKind::log_sum_exp, DType::f64);
  for (const bool logarithm : {false, true})
    trials.push_back({LoopSchedule{"rows_gpu", "fma-f32", 0}, SoftmaxParams{2, 2, logarithm}, {DType::f64}, {DType::f64}});
  return trials;
}

TEST(VulkanTrialElements, RowsOfAnyTypePass) { expect_good(rows()); }
TEST(VulkanTrialElements, RowsOfAnyTypeThatDoNothingAreFound) { expect_found(rows()); }
TEST(VulkanTrialElements, ProgramsOnAnyTypesPass) { expect_good(programs()); }
TEST(VulkanTrialElements, ProgramsOnAnyTypesThatDoNothingAreFound) { expect_found(programs()); }
TEST(VulkanTrialElements, QuantizedKindsPass) { expect_good(quantized()); }
TEST(VulkanTrialElements, QuantizedKindsThatDoNothingAreFound) { expect_found(quantized()); }
TEST(VulkanTrialElements, ProductsOfAnyTypePass) { expect_good(products()); }
TEST(VulkanTrialElements, ProductsOfAnyTypeThatDoNothingAreFound) { expect_found(products()); }
TEST(VulkanTrialElements, PositionsOfMaximaPass) { expect_good(positions()); }
TEST(VulkanTrialElements, PositionsOfMaximaThatDoNothingAreFound) { expect_found(positions()); }

// All conversions that kernels serve, and all operations on integers, have stages; what rounds nothing is compared to the bit.
TEST(VulkanTrialElements, AllTypesHaveStages) {
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,  DType::u8,     DType::i16,
                              DType::u16, DType::i32, DType::u32,  DType::i64, DType::u64, DType::boolean};
  for (const DType from : kTypes)
    for (const DType to : kTypes) {
      const auto stages = stages_of(cast(from, to));
      ASSERT_EQ(stages.size(), 2u) << name_of(from) << " to " << name_of(to);
      EXPECT_EQ(stages[0].inputs[0].dtype, from);
      EXPECT_EQ(stages[0].outputs[0].dtype, to);
      EXPECT_TRUE(is_exact(stages[0]));
    }
  for (int k = 0; k <= static_cast<int>(mish); ++k) {
    const auto op = static_cast<PointwiseOp>(k);
    if (!serves_integers(op)) continue;
    const Trial t = program({{op, 0, 1, 2, 0, 0}}, {DType::i32, DType::i32, DType::i32}, DType::i32);
    ASSERT_EQ(stages_of(t).size(), 2u) << name_of(op);
    EXPECT_TRUE(is_exact(stages_of(t)[0]));
  }
}

// Results that are no floats are tried behind the last operation, the others as floats.
TEST(VulkanTrialElements, ComparisonsOfComputedValuesAreTriedInParts) {
  const auto stages = stages_of(programs().back());
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[0].outputs[0].dtype, DType::boolean);
  EXPECT_TRUE(is_exact(stages[0]));
  EXPECT_EQ(stages[2].outputs[0].dtype, DType::f32);
  EXPECT_FALSE(is_exact(stages[2]));
}

}  // namespace
}  // namespace sparkle::vulkan
