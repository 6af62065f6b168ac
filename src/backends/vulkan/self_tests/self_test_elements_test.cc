// Self-tests of element-wise programs, products and rows on any types, of the quantize family and of pools that tell positions:
// kernels that do nothing are denied. That good ones pass: self_tests_test.cc.
#include "backends/vulkan/self_tests/self_test_samples_testing.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/pointwise/arithmetic.h"

namespace sparkle::vulkan {
namespace {

using enum PointwiseOp;

SelfTest program(std::vector<PointwiseInstruction> steps, std::vector<DType> inputs, DType output) {
  return {LoopSchedule{"printed", "fma-f32", 0},
          PointwiseParams{static_cast<int>(inputs.size()), std::move(steps)},
          std::move(inputs),
          {output}};
}
SelfTest cast(DType from, DType to) { return program({{}}, {from}, to); }

bool uses(const SelfTest& t, DType type) {
  return std::find(t.inputs.begin(), t.inputs.end(), type) != t.inputs.end() ||
         std::find(t.outputs.begin(), t.outputs.end(), type) != t.outputs.end();
}

bool has_types(VulkanBackend& backend, const SelfTest& t) {
  const Features& f = backend.context().features();
  return (f.f16 || !uses(t, DType::f16)) && (f.f64 || !uses(t, DType::f64));
}

// With kernels that do nothing each sample of the variant is found and told: at least so many on a device with all types.
void expect_found(Family family, std::string_view name, int least) {
  SPARKLE_NEEDS_VULKAN(any);
  const Features& f = any->context().features();
  ContextOptions options;
  options.cache = false;
  const auto& variants = info(family).variants;
  const auto variant = std::find_if(variants.begin(), variants.end(), [&](const Variant& v) { return v.name == name; });
  ASSERT_NE(variant, variants.end());
  int found = 0;
  for (SelfTest& t : samples(family)) {
    if (!schedule_for(t, *variant, any->device())) continue;
    ++found;
    std::string why;
    const auto backend = test_backend(options, why, {.nothing = t.variant()});
    if (!backend) GTEST_SKIP() << why;
    if (!has_types(*backend, t)) continue;
    ASSERT_TRUE(backend->try_lines(t.to_text() + "\n").ok());
    ASSERT_EQ(backend->findings().size(), 1u) << t.to_text();
    EXPECT_TRUE(backend->findings()[0].starts_with(t.variant() + ": wrong: it gave")) << backend->findings()[0];
  }
  if (f.f16 && f.f64 && f.i8) {
    EXPECT_GE(found, least);
  }
}

TEST(VulkanSelfTestElements, ReductionsThatDoNothingAreFound) { expect_found(Family::reduce, "rows_gpu", 19); }
TEST(VulkanSelfTestElements, SoftmaxThatDoesNothingIsFound) { expect_found(Family::softmax, "rows_gpu", 4); }
TEST(VulkanSelfTestElements, ProgramsThatDoNothingAreFound) { expect_found(Family::pointwise, "printed", 24); }
TEST(VulkanSelfTestElements, QuantizedKindsThatDoNothingAreFound) { expect_found(Family::quantize, "elements", 14); }
TEST(VulkanSelfTestElements, ProductsOfAnyTypeThatDoNothingAreFound) { expect_found(Family::gemm, "own_type", 8); }
TEST(VulkanSelfTestElements, PositionsOfMaximaThatDoNothingAreFound) { expect_found(Family::pool, "naive", 7); }

// All conversions that kernels support, and all operations on integers, have stages; what rounds nothing is compared to the
// bit.
TEST(VulkanSelfTestElements, AllTypesHaveStages) {
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
    const SelfTest t = program({{op, 0, 1, 2, 0, 0}}, {DType::i32, DType::i32, DType::i32}, DType::i32);
    ASSERT_EQ(stages_of(t).size(), 2u) << name_of(op);
    EXPECT_TRUE(is_exact(stages_of(t)[0]));
  }
}

// Results that are no floats are tried behind the last operation, the others as floats.
TEST(VulkanSelfTestElements, ComparisonsOfComputedValuesAreTriedInParts) {
  SelfTest last = samples(Family::pointwise).back();
  last.schedule = LoopSchedule{"printed", "fma-f32", 0};
  const auto stages = stages_of(last);
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[0].outputs[0].dtype, DType::boolean);
  EXPECT_TRUE(is_exact(stages[0]));
  EXPECT_EQ(stages[2].outputs[0].dtype, DType::f32);
  EXPECT_FALSE(is_exact(stages[2]));
}

}  // namespace
}  // namespace sparkle::vulkan
