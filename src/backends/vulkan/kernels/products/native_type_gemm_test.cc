// Products of doubles and of integers over the range of their type on Vulkan against the reference: random shapes, batches,
// transposes, broadcasts and gaps, sums of nothing; integers to the bit.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/registry.h"

namespace sparkle::vulkan {
namespace {

constexpr uint64_t kKinds = 6;

// Integers over the range of their type, every third of them small.
void fill(RandomStage& s, TestOperand& operand) {
  const DType type = operand.desc.dtype;
  const int64_t size = size_of(type);
  for_each_index(operand.desc.shape, [&](const Dims& at) {
    if (type == DType::f64) return store_element(type, s.random.normal(), element_at(operand.view(), at));
    const int shift = s.random.chance(30) ? 64 - 4 : static_cast<int>(64 - 8 * size);
    const auto high = static_cast<uint64_t>(s.random.between(0, 0xffffffff)) << 32,
               low = static_cast<uint64_t>(s.random.between(0, 0xffffffff));
    const int64_t value = static_cast<int64_t>(high | low) >> shift;
    std::memcpy(element_at(operand.view(), at), &value, static_cast<size_t>(size));
  });
}
void add(RandomStage& s, const TensorDesc& desc) {
  s.inputs.emplace_back(desc);
  fill(s, s.inputs.back());
  s.stage.inputs.push_back(desc);
}

// Bias, residuals and, of doubles, factors and activations: one of few kinds, since software devices take long for a pipeline.
Epilogue epilogue(RandomStage& s, int64_t channels, const Dims& y, uint64_t seed) {
  cpu::TestRandom kind(77 + seed % kKinds);
  const bool doubles = s.real == DType::f64;
  Epilogue e;
  e.scale = doubles && kind.chance(30);
  e.bias = kind.chance(50);
  e.residuals_before = static_cast<int>(kind.between(0, 1));
  e.residuals_after = doubles ? static_cast<int>(kind.between(0, 1)) : 0;
  if (doubles) e.alpha = s.random.chance(30) ? 1.0 / 3 : 1;
  if (doubles && kind.chance(60)) e.activation = static_cast<Activation>(kind.between(1, 14));
  if (e.activation == Activation::gelu) e.activation = Activation::mish;
  e.a = 0.3, e.b = 0.7;
  for (int i = 0; i < e.scale + e.bias; ++i) add(s, dense_desc(s.real, {channels}));
  for (int i = 0; i < e.residuals(); ++i) add(s, s.any(y, 30));
  return e;
}

void dense(RandomStage& s, uint64_t seed) {
  GemmParams p;
  p.loader = Loader::dense;
  const int64_t m = s.random.between(1, 40), n = s.random.between(1, 40);
  const int64_t k = s.random.chance(15) ? s.random.between(0, 1) : s.random.between(2, 60);
  Dims a, b, y;
  for (int64_t i = s.random.between(0, 3); i > 0; --i) {
    const int64_t size = s.random.between(1, 3);
    a.push_back(size), b.push_back(size), y.push_back(size);
  }
  a.push_back(m), a.push_back(k), b.push_back(k), b.push_back(n), y.push_back(m), y.push_back(n);
  TensorDesc left = s.any(a), right = s.any(b);
  for (int i = 0; i + 2 < y.size(); ++i) {
    if (s.random.chance(30)) left.layout.strides[i] = 0;
    if (s.random.chance(30)) right.layout.strides[i] = 0;
  }
  add(s, left), add(s, right);
  s.output(s.any(y));
  p.epilogue = epilogue(s, n, y, seed);
  s.stage.params = p;
}

void window(RandomStage& s, uint64_t seed) {
  GemmParams p;
  p.groups = s.random.chance(40) ? s.random.between(2, 3) : 1;
  const int64_t channels = p.groups * s.random.between(1, 7), filters = p.groups * s.random.between(1, 9);
  Dims x{s.random.between(1, 2), channels}, y{x[0], filters}, w{filters, channels / p.groups};
  const int spatial = static_cast<int>(s.random.between(1, 3));
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(3 - spatial + i);
    Window& f = p.window;
    f.filter[at] = s.random.between(1, 4), f.stride[at] = s.random.between(1, 3), f.dilation[at] = s.random.between(1, 2);
    f.pad_begin[at] = s.random.between(-1, 3);
    x.push_back(s.random.between(1, 8)), y.push_back(s.random.between(1, 6)), w.push_back(f.filter[at]);
  }
  add(s, s.any(x)), add(s, s.any(w));
  s.output(s.any(y));
  p.epilogue = epilogue(s, filters, y, seed);
  s.stage.params = p;
}

// Tiles by turns, weights as constants and not.
void check(VulkanBackend& backend, RandomStage& s, uint64_t seed) {
  const std::string note = "seed " + std::to_string(seed) + " " + to_text(s.stage.params) + " " +
                           s.stage.inputs[0].shape.to_string() + " " + s.stage.inputs[1].shape.to_string();
  const Variant* variant = variant_named(Family::gemm, kNativeType);
  ASSERT_NE(variant, nullptr);
  Reason why = Reason::none;
  const auto schedules = info(Family::gemm).schedules(s.stage, *variant, backend.device(), why);
  ASSERT_FALSE(schedules.empty()) << note;
  auto wanted = reference_outputs(s.stage, s.inputs);
  const Status ran = run_stage(backend, s.stage, schedules[seed % kKinds % schedules.size()], s.inputs, s.outputs,
                               s.random.chance(50) ? 2 : 0);
  ASSERT_TRUE(ran.ok()) << ran.error().message << " " << note;
  if (s.real == DType::f64) return expect_close(s.outputs[0], wanted[0], 1e-14, note);
  EXPECT_TRUE(s.outputs[0].bytes == wanted[0].bytes) << name_of(s.real) << " " << note;
}

TEST(VulkanNativeTypeGemm, IntegersWrapAround) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const DType type : {DType::i32, DType::u32, DType::i64, DType::u64})
    for (uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
      RandomStage s(seed * 5 + static_cast<uint64_t>(type), type);
      dense(s, seed);
      check(*backend, s, seed);
    }
}

// Factors of integers are applied in double precision, and what results is truncated.
TEST(VulkanNativeTypeGemm, FactorsOfIntegers) {
  SPARKLE_NEEDS_VULKAN(backend);
  SPARKLE_NEEDS_DOUBLES();
  for (const DType type : {DType::i32, DType::u32, DType::i64, DType::u64})
    for (uint64_t seed = 1; seed <= 20 && !::testing::Test::HasFailure(); ++seed) {
      RandomStage s(seed * 7 + static_cast<uint64_t>(type), type);
      dense(s, seed);
      constexpr double kFactors[] = {0.5, -2.75, 3, 1e3, 0};
      get<GemmParams>(s.stage.params).epilogue.alpha = kFactors[seed % 5];
      check(*backend, s, seed);
    }
}

TEST(VulkanNativeTypeGemm, ProductsOfDoubles) {
  SPARKLE_NEEDS_VULKAN(backend);
  SPARKLE_NEEDS_DOUBLES();
  for (uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, DType::f64);
    dense(s, seed);
    check(*backend, s, seed);
  }
}

TEST(VulkanNativeTypeGemm, WindowsOfDoubles) {
  SPARKLE_NEEDS_VULKAN(backend);
  SPARKLE_NEEDS_DOUBLES();
  for (uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed + 500, DType::f64);
    window(s, seed);
    check(*backend, s, seed);
  }
}

// NaN and infinities come out where the reference has them.
TEST(VulkanNativeTypeGemm, NaNAndInfinities) {
  SPARKLE_NEEDS_VULKAN(backend);
  SPARKLE_NEEDS_DOUBLES();
  for (uint64_t seed = 1; seed <= 15 && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed + 900, DType::f64);
    dense(s, seed);
    s.inputs[0].fill([&] {
      if (s.random.chance(96)) return s.random.normal();
      return s.random.chance(40) ? std::nan("") : s.random.chance(50) ? HUGE_VAL : -HUGE_VAL;
    });
    check(*backend, s, seed);
  }
}

// What the kernels cannot compute is refused when the plan is made.
TEST(VulkanNativeTypeGemm, RefusesErfAndWhatNeedsDoublesWithoutThem) {
  SPARKLE_NEEDS_VULKAN(backend);
  const Device& device = backend->device();
  Device without = device;
  std::erase_if(without.units, [](const MathUnit& unit) { return unit.name == "alu-f64"; });
  const auto refusal = [&](const Device& on, DType type, const Epilogue& e) {
    Stage stage;
    stage.inputs = {dense_desc(type, {3, 4}), dense_desc(type, {4, 5})};
    stage.outputs = {dense_desc(type, {3, 5})};
    stage.params = GemmParams{Loader::dense, 1, {}, e};
    const FamilyInfo& family = info(Family::gemm);
    Reason why = Reason::none;
    for (const Variant& v : family.variants)
      if (v.runs_on(on) && !family.schedules(stage, v, on, why).empty()) return Reason::none;
    return why;
  };
  Epilogue half, erf;
  half.alpha = 0.5, erf.activation = Activation::gelu;
  EXPECT_EQ(refusal(without, DType::i32, {}), Reason::none);
  EXPECT_EQ(refusal(without, DType::i64, half), Reason::type_not_served);
  EXPECT_EQ(refusal(without, DType::f64, {}), Reason::type_not_served);
  EXPECT_EQ(refusal(device, DType::i32, {}), Reason::none);
  EXPECT_EQ(refusal(device, DType::f64, erf), Reason::type_not_served);
  EXPECT_EQ(refusal(device, DType::i16, {}), Reason::type_not_served);
}

}  // namespace
}  // namespace sparkle::vulkan
