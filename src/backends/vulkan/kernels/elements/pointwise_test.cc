// Programs printed to GLSL against the family's reference: random programs, shapes, layouts, broadcasts and element types;
// every operation against its definition; and that shapes and parameters build nothing.
#include "backends/vulkan/shaders/glsl_compiler.h"
#include "backends/vulkan/kernels/elements/pointwise_text.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/pointwise/gpu_doubles.h"
#include "families/pointwise/arithmetic.h"
#include "families/type_set.h"
#include "families/family.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

const Schedule kPrinted = LoopSchedule{"printed", "fma-f32", 0};

struct Case {
  Stage stage;
  std::vector<TestOperand> inputs;
};

// `relative`: of each wanted value, or of 1 where that is smaller.
void check(VulkanBackend& backend, Case& test, double relative, const std::string& note) {
  std::vector<TestOperand> got, wanted = reference_outputs(test.stage, test.inputs);
  got.emplace_back(test.stage.outputs[0]);
  const Status ran = run_stage(backend, test.stage, kPrinted, test.inputs, got, 0);
  ASSERT_TRUE(ran.ok()) << ran.error().message << " " << note;
  TestOperand gaps(got[0].desc);
  int wrong = 0;
  for_each_index(got[0].desc.shape, [&](const Dims& at) {
    const double a = got[0].at(at), b = wanted[0].at(at);
    const double rounding = is_fp16(got[0].desc) && std::isfinite(a) && std::isfinite(b) ? half_place(a, b) : 0;
    if (!cpu::close(a, b, relative * std::max(1.0, std::abs(b)) + rounding) && ++wrong <= 3) {
      ADD_FAILURE() << note << " at " << at.to_string() << ": " << a << " instead of " << b;
      for (TestOperand& x : test.inputs) std::printf("  input %.9g\n", x.at(at));
    }
    std::memcpy(element_at(gaps.view(), at), element_at(got[0].view(), at), static_cast<size_t>(size_of(got[0].desc.dtype)));
  });
  EXPECT_EQ(wrong, 0) << note;
  EXPECT_TRUE(gaps.bytes == got[0].bytes) << note << ": bytes between the elements have changed";
}

// Few programs in many shapes: software devices take a while for each new shader.
TEST(VulkanPointwise, RandomShapesMatchTheReference) {
  SPARKLE_NEEDS_VULKAN(backend);
  using enum PointwiseOp;
  const PointwiseParams programs[] = {
      {3, {{fma, 0, 1, 2, 0, 0}, {silu, 3, 0, 0, 0, 0}}},
      {2, {{less, 0, 1, 0, 0, 0}, {affine, 1, 0, 0, 0.5, -1}, {select, 2, 0, 3, 0, 0}}},
      {4, {{max, 0, 1, 0, 0, 0}, {min, 4, 2, 0, 0, 0}, {clip, 5, 0, 0, -1.5, 1.25}, {mul, 6, 3, 0, 0, 0}}},
      {1, {{identity, 0, 0, 0, 0, 0}}},
  };
  const std::vector<DType> types[] = {{DType::f32, DType::f32, DType::f32, DType::f32},
                                      {DType::f32, DType::boolean, DType::u8, DType::f32},
                                      {DType::f16, DType::f32, DType::bf16, DType::f16},
                                      {DType::f32, DType::i64, DType::i8, DType::i32}};
  const uint64_t before = backend->counters().pipelines;
  for (uint64_t seed = 1; seed <= 160 && !HasFailure(); ++seed) {
    TestRandom random(seed);
    const auto which = static_cast<size_t>(random.between(0, 3));
    Case test;
    const PointwiseParams& params = programs[which];
    const std::vector<DType>& type = types[which];
    const int rank = static_cast<int>(random.between(0, 6));
    Dims shape = random.chance(20) ? Dims{random.between(1, 3), random.between(500, 3000)}
                                   : random.shape(rank, rank <= 2   ? 80
                                                        : rank == 3 ? 24
                                                                    : 7);
    if (random.chance(5) && rank > 0) shape[static_cast<int>(random.between(0, rank - 1))] = 0;
    for (int i = 0; i < params.inputs; ++i) {
      test.stage.inputs.push_back({type[static_cast<size_t>(i)], shape, random.layout(shape, random.chance(40) ? 50 : 0)});
      test.inputs.emplace_back(test.stage.inputs.back());
      const bool truth = test.stage.inputs.back().dtype == DType::boolean;
      test.inputs.back().fill([&] { return truth ? (random.chance(50) ? 1.0 : 0.0) : random.normal() * 2; });
    }
    test.stage.outputs.push_back({which == 2 ? DType::f16 : DType::f32, shape, random.layout(shape)});
    test.stage.params = params;
    check(*backend, test, which == 2 ? 1e-3 : 1e-6, "seed " + std::to_string(seed) + " " + expression(params));
  }
  EXPECT_LE(backend->counters().pipelines - before, 8u) << "a new shape has built a pipeline";
}

// Every operation on values where functions turn, among others.
void check_operations(DType type) {
  SPARKLE_NEEDS_VULKAN(backend);
  const bool twice = type == DType::f64;
  std::vector<double> points{0,
                             -0.0,
                             1,
                             -1,
                             0.5,
                             -0.5,
                             2,
                             -2,
                             1e-6,
                             -1e-6,
                             1e-3,
                             0.3,
                             -0.3,
                             0.999999,
                             3,
                             -3,
                             7.25,
                             -7.25,
                             20,
                             -20,
                             88,
                             -88,
                             104,
                             -104,
                             1e4,
                             -1e4,
                             65535.5,
                             70000,
                             -123456.789,
                             3e7,
                             -1e10,
                             1.5e20,
                             3e38,
                             -3e38,
                             1e-30,
                             -1e-30,
                             1.0000001,
                             -1.0000001,
                             0.70710678,
                             0.25,
                             0.4142135,
                             2.41421,
                             1.5707963,
                             3.1415927,
                             6.2831853,
                             100.5,
                             710,
                             -0.999,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  for (int k = 0; k <= static_cast<int>(PointwiseOp::mish); ++k) {
    const auto op = static_cast<PointwiseOp>(k);
    if (twice && !has_double_on_gpus(op)) continue;
    TestRandom random(static_cast<uint64_t>(k) + 1);
    Case test;
    PointwiseParams params;
    params.inputs = std::max(1, arity_of(op));
    params.program = {{op, 0, std::min(1, params.inputs - 1), std::min(2, params.inputs - 1), 0.25, 0.75}};
    const Dims shape{8, 331};
    for (int i = 0; i < params.inputs; ++i) {
      test.stage.inputs.push_back({type, shape, row_major(shape)});
      test.inputs.emplace_back(test.stage.inputs.back());
      // Multiples of 1/2, so that comparisons see equal values; points where functions turn; any size.
      test.inputs.back().fill([&] {
        const int64_t kind = random.between(0, 3);
        const double v = kind == 0   ? std::round(random.normal() * 4) / 2
                         : kind == 1 ? points[static_cast<size_t>(random.between(0, static_cast<int64_t>(points.size()) - 1))]
                         : kind == 2 ? random.normal() * 3
                                     : std::ldexp(random.normal(), static_cast<int>(random.between(-20, 30)));
        return twice ? v : static_cast<double>(static_cast<float>(v));
      });
    }
    test.stage.outputs.push_back({type, shape, row_major(shape)});
    test.stage.params = params;
    std::vector<TestOperand> got, wanted = reference_outputs(test.stage, test.inputs);
    got.emplace_back(test.stage.outputs[0]);
    const Status ran = run_stage(*backend, test.stage, kPrinted, test.inputs, got, 0);
    ASSERT_TRUE(ran.ok()) << ran.error().message << " " << name_of(op);
    int wrong = 0;
    for_each_index(shape, [&](const Dims& at) {
      double b = wanted[0].at(at);
      const double a = got[0].at(at);
      // What rounds to infinity or below the smallest normal number of f32.
      if (!twice && std::abs(b) > 3.4028235677973366e38) b = std::copysign(std::numeric_limits<double>::infinity(), b);
      const bool near_the_end = !twice && std::abs(b) > 3.3e38 && std::signbit(a) == std::signbit(b) && std::abs(a) > 3.3e38;
      // A sum of a product may be rounded twice: what counts is the size of the terms.
      double size = std::max(1.0, std::abs(b));
      if (op == PointwiseOp::fma) size += std::abs(test.inputs[2].at(at));
      if (near_the_end || cpu::close(a, b, (twice ? 4e-15 : 2e-6) * size)) return;
      if (++wrong > 3) return;
      std::string arguments;
      for (TestOperand& x : test.inputs) arguments += " " + std::to_string(x.at(at));
      ADD_FAILURE() << name_of(op) << arguments << ": " << a << " instead of " << b;
    });
  }
}

TEST(VulkanPointwise, EveryOperationMatchesItsDefinition) { check_operations(DType::f32); }
TEST(VulkanPointwise, EveryDoubleOperationMatchesItsDefinition) {
  SPARKLE_NEEDS_DOUBLES();
  check_operations(DType::f64);
}

// Integers are exact and wrap around, in all types and next to truth values.
TEST(VulkanPointwise, IntegersMatchTheReferenceBitByBit) {
  SPARKLE_NEEDS_VULKAN(backend);
  using enum PointwiseOp;
  constexpr DType kTypes[] = {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64};
  const PointwiseOp steps[][4] = {{add, mul, sub, max},
                                  {div, mod, floor_mod, min},
                                  {abs, neg, sign, prelu},
                                  {pow, select, clip, relu},
                                  {less, greater_equal, equal, logical_xor}};
  for (const DType type : kTypes) {
    for (const auto& list : steps) {
      const std::string note = std::string(name_of(type)) + " " + std::string(name_of(list[0]));
      TestRandom random(static_cast<uint64_t>(type) * 17 + static_cast<uint64_t>(list[0]));
      Case test;
      PointwiseParams params{3, {}};
      // The last instruction mixes all results: each times another odd number, added.
      for (int i = 0; i < 4; ++i)
        params.program.push_back(
            {list[i], list[i] == select ? 2 : 0, list[i] == select ? 0 : 1, list[i] == select ? 1 : 2, -3.5, 90.25});
      params.program.push_back({fma, 3, 2, 4, 0, 0});
      params.program.push_back({fma, 5, 2, 6, 0, 0});
      params.program.push_back({fma, 7, 1, 8, 0, 0});
      const Dims shape{5, 77};
      for (int i = 0; i < 3; ++i) {
        test.stage.inputs.push_back({type, shape, random.layout(shape, 20)});
        test.inputs.emplace_back(test.stage.inputs.back());
        test.inputs.back().fill([&] {
          return random.chance(40) ? std::round(std::ldexp(random.normal(), static_cast<int>(random.between(0, 63))))
                                   : static_cast<double>(random.between(-9, 9));
        });
      }
      test.stage.outputs.push_back({type, shape, random.layout(shape)});
      test.stage.params = params;
      std::vector<TestOperand> got, wanted;
      got.emplace_back(test.stage.outputs[0]);
      wanted.emplace_back(test.stage.outputs[0]);
      std::vector<TensorView> in, out{wanted[0].view()};
      for (TestOperand& x : test.inputs) in.push_back(x.view());
      pointwise_info().reference(test.stage.params, in, out);
      const Status ran = run_stage(*backend, test.stage, kPrinted, test.inputs, got, 0);
      ASSERT_TRUE(ran.ok()) << ran.error().message << " " << note;
      EXPECT_TRUE(got[0].bytes == wanted[0].bytes) << note;
    }
  }
}

TEST(VulkanPointwise, ConversionsMatchTheReferenceBitByBit) {
  SPARKLE_NEEDS_VULKAN(backend);
  const bool doubles = backend->context().features().f64;
  PointwiseParams params{1, {{}}};
  for (int f = 0; f < kDTypes; ++f)
    for (int t = 0; t < kDTypes; ++t) {
      const auto from = static_cast<DType>(f), to = static_cast<DType>(t);
      // Of the narrow types, from and to floats of both precisions and the longest integers.
      constexpr TypeSet kOthers{DType::f32, DType::f64, DType::i64};
      if ((kNarrow.has(from) && !kOthers.has(to)) || (kNarrow.has(to) && !kOthers.has(from))) continue;
      const std::string note = std::string(name_of(from)) + " to " + std::string(name_of(to));
      if (!doubles && pointwise_arithmetic(std::vector<DType>{from}, to) == DType::f64) continue;
      TestRandom random(static_cast<uint64_t>(from) * 31 + static_cast<uint64_t>(to));
      Case test;
      const Dims shape{1203};
      test.stage.params = params;
      test.stage.inputs.push_back({from, shape, row_major(shape)});
      test.stage.outputs.push_back({to, shape, row_major(shape)});
      test.inputs.emplace_back(test.stage.inputs[0]);
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      int count = 0;
      test.inputs[0].fill([&]() -> double {
        if ((is_float(from) || is_narrow_float(from)) && ++count < 6)
          return count < 3 ? kInfinity : count < 5 ? -kInfinity : std::nan("");
        if (random.chance(30)) return static_cast<double>(random.between(-300, 300));
        if (kNarrow.has(to) && random.chance(50)) return std::ldexp(random.normal(), static_cast<int>(random.between(-20, 12)));
        return std::ldexp(random.normal(), static_cast<int>(random.between(is_float(from) ? -24 : 0, 64)));
      });
      // Every code, and in the bits beyond an element's own whatever there may be.
      if (kNarrow.has(from))
        for (size_t i = 0; i < 256; ++i) test.inputs[0].bytes[i] = static_cast<std::byte>(i);
      std::vector<TestOperand> got, wanted;
      got.emplace_back(test.stage.outputs[0]);
      wanted.emplace_back(test.stage.outputs[0]);
      const TensorView in = test.inputs[0].view(), out = wanted[0].view();
      pointwise_info().reference(test.stage.params, {&in, 1}, {&out, 1});
      const Status ran = run_stage(*backend, test.stage, kPrinted, test.inputs, got, 0);
      ASSERT_TRUE(ran.ok()) << ran.error().message << " " << note;
      int wrong = 0;
      for_each_index(shape, [&](const Dims& at) {
        const double a = got[0].at(at), b = wanted[0].at(at);
        // Numbers below f32's normal ones may be taken for zero.
        const bool tiny = is_float(to) && std::abs(b) < 1.2e-38 && a == 0;
        if (kNarrow.has(to) && got[0].bytes[static_cast<size_t>(at[0])] != wanted[0].bytes[static_cast<size_t>(at[0])]) ++wrong;
        if (a == b || (a != a && b != b) || tiny) return;
        if (++wrong <= 3) ADD_FAILURE() << note << ": " << test.inputs[0].at(at) << " became " << a << " instead of " << b;
      });
      EXPECT_EQ(wrong, 0) << note;
    }
}

// Doubles next to integers of 64 bits, in any layout; and what rounds twice where it must not.
TEST(VulkanPointwise, DoublesMatchTheReference) {
  SPARKLE_NEEDS_VULKAN(backend);
  SPARKLE_NEEDS_DOUBLES();
  using enum PointwiseOp;
  const PointwiseParams programs[] = {
      {3, {{mul, 0, 1, 0, 0, 0}, {add, 3, 2, 0, 0, 0}, {clip, 4, 0, 0, -1.5, 1e9}}},
      {2, {{less, 0, 1, 0, 0, 0}, {affine, 1, 0, 0, 0.1, -1}, {select, 2, 0, 3, 0, 0}}},
      {2, {{pow, 0, 1, 0, 0, 0}}},
  };
  const std::vector<DType> types[] = {{DType::f64, DType::f32, DType::f64, DType::f64},
                                      {DType::f64, DType::i64, DType::f64},
                                      {DType::f32, DType::i32, DType::f32}};
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    TestRandom random(seed);
    const auto which = static_cast<size_t>(random.between(0, 2));
    Case test;
    test.stage.params = programs[which];
    const Dims shape = random.shape(static_cast<int>(random.between(0, 5)), 9);
    for (int i = 0; i < programs[which].inputs; ++i) {
      test.stage.inputs.push_back(
          {types[which][static_cast<size_t>(i)], shape, random.layout(shape, random.chance(40) ? 50 : 0)});
      test.inputs.emplace_back(test.stage.inputs.back());
      test.inputs.back().fill([&] { return random.normal() * 4; });
    }
    test.stage.outputs.push_back({types[which].back(), shape, random.layout(shape)});
    check(*backend, test, which == 2 ? 2e-7 : 1e-15, "seed " + std::to_string(seed) + " " + expression(programs[which]));
  }
}

TEST(VulkanPointwise, ParametersAndShapesBuildNothing) {
  SPARKLE_NEEDS_VULKAN(backend);
  const auto compile = [&](const Dims& shape, double low) {
    Stage stage;
    stage.params = PointwiseParams{1, {{PointwiseOp::clip, 0, 0, 0, low, 6}}};
    stage.inputs.push_back(dense_desc(DType::f32, shape));
    stage.outputs.push_back(dense_desc(DType::f32, shape));
    EXPECT_TRUE(backend->compile(stage, kPrinted, 0).ok());
  };
  compile({4, 4}, 0);
  const uint64_t before = backend->counters().pipelines;
  compile({1, 3, 8, 100}, -1);
  compile({7}, 2.5);
  EXPECT_EQ(backend->counters().pipelines, before);
}

// Conversions of 16 bits are the device's where it promises that they are exact, and bound to be so by what the shader demands.
TEST(VulkanPointwise, ConvertsFp16ByHandOrByPromise) {
  const PointwiseParams program{1, {{PointwiseOp::affine, 0, 0, 0, 0.5, 1}}};
  const DType half[] = {DType::f16}, single[] = {DType::f32};
  const auto text = [&](std::span<const DType> input, DType output, bool promised) {
    const auto printed = pointwise_text(program, input, output, {false, promised});
    EXPECT_TRUE(printed.ok() && compile_glsl(printed->glsl).ok());
    return printed.ok() ? printed->glsl : std::string();
  };
  const auto has = [](const std::string& in, std::string_view what) { return in.find(what) != std::string::npos; };
  const std::string by_hand = text(half, DType::f16, false), by_device = text(half, DType::f16, true);
  EXPECT_TRUE(has(by_hand, "float float_of_f16(") && has(by_hand, "uint f16_of_float("));
  EXPECT_FALSE(has(by_hand, "spirv_execution_mode"));
  EXPECT_TRUE(has(by_device, "packFloat2x16") && !has(by_device, "float_of_f16("));
  for (const char* mode : {"4461, 16", "4459, 16", "4462, 16"}) EXPECT_TRUE(has(by_device, mode)) << mode;
  EXPECT_FALSE(has(text(single, DType::f32, true), "spirv_execution_mode"));
}

TEST(VulkanPointwise, RefusesWhatItCannotServe) {
  SPARKLE_NEEDS_VULKAN(backend);
  Stage stage;
  stage.params = PointwiseParams{1, {{PointwiseOp::sin, 0, 0, 0, 0, 0}}};
  stage.inputs.push_back(dense_desc(DType::f64, {4}));
  stage.outputs.push_back(dense_desc(DType::f64, {4}));
  EXPECT_EQ(backend->compile(stage, kPrinted, 0).error().reason, Reason::type_not_served);
  const FamilyInfo& family = pointwise_info();
  const auto row =
      std::find_if(family.variants.begin(), family.variants.end(), [](const Variant& v) { return v.name == "printed"; });
  Reason why = Reason::none;
  EXPECT_TRUE(family.schedules(stage, *row, backend->device(), why).empty());
  EXPECT_EQ(why, Reason::type_not_served);
  // A factor among integers of 64 bits.
  stage.params = PointwiseParams{1, {{PointwiseOp::affine, 0, 0, 0, 0.5, 0}}};
  stage.inputs[0] = stage.outputs[0] = dense_desc(DType::i64, {4});
  EXPECT_EQ(backend->compile(stage, kPrinted, 0).error().reason, Reason::type_not_served);
  EXPECT_TRUE(family.schedules(stage, *row, backend->device(), why).empty());
}

}  // namespace
}  // namespace sparkle::vulkan
