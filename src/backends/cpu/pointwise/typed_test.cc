// Pointwise kernels on types other than f32: rows of f64 and integers equal the reference bit by bit, strips read and write
// 16-bit floats and integers with one rounding.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "base/system/denormals.h"
#include "families/family.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,  DType::u8,     DType::i16,
                            DType::u16, DType::i32, DType::u32,  DType::i64, DType::u64, DType::boolean};

// Compares a variant with the reference; `ulps` in units of the output's rounding, 0: equal bits.
void check(const Stage& stage, const std::string& variant, const std::string& unit, double relative, TestRandom& random,
           const std::string& note) {
  std::vector<TestTensor> inputs;
  for (const TensorDesc& desc : stage.inputs) {
    inputs.emplace_back(desc);
    inputs.back().fill([&] {
      if (is_float(desc.dtype)) return random.normal() * 3;
      // The whole range of 64-bit integers, and small values whose products do not wrap.
      return random.chance(50) ? std::ldexp(random.normal(), static_cast<int>(random.between(0, 66)))
                               : static_cast<double>(random.between(-9, 9));
    });
  }
  std::vector<TensorView> views;
  std::vector<std::byte*> pointers;
  for (TestTensor& input : inputs) views.push_back(input.view()), pointers.push_back(input.origin());
  TestTensor want(stage.outputs[0]);
  const TensorView want_view = want.view();
  pointwise_info().reference(stage.params, views, {&want_view, 1});
  for (int threads : {1, 2}) {
    auto kernel = make_pointwise(stage, LoopSchedule{variant, unit, 128}, Device{}, 0);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message << " " << note;
    ThreadPool pool(threads);
    TestTensor got(stage.outputs[0]);
    std::byte* const out = got.origin();
    (*kernel)->run({pointers, {&out, 1}, nullptr, &pool});
    ASSERT_TRUE(got.sentinels_hold()) << note;
    const auto size = static_cast<size_t>(size_of(stage.outputs[0].dtype));
    for_each_index(stage.outputs[0].shape, [&](const Dims& at) {
      if (std::memcmp(element_at(got.view(), at), element_at(want.view(), at), size) == 0) return;
      const double g = got.at(at), w = want.at(at);
      ASSERT_TRUE(close(g, w, relative * std::max(1.0, std::abs(w))))
          << note << " at " << at.to_string() << " got " << g << " want " << w << " "
          << expression(get<PointwiseParams>(stage.params));
    });
  }
}

// A random program of operations that the type has.
PointwiseParams program(TestRandom& random, int inputs, bool integers) {
  PointwiseParams params;
  params.inputs = inputs;
  const int64_t steps = random.between(1, 5);
  for (int64_t i = 0; i < steps; ++i) {
    PointwiseInstruction step;
    do {
      step.op = static_cast<PointwiseOp>(random.between(0, static_cast<int>(PointwiseOp::mish)));
    } while (integers && (!serves_integers(step.op) || step.op == PointwiseOp::clip));
    const int64_t values = params.inputs + i;
    int* const arguments[] = {&step.x, &step.y, &step.z};
    for (int k = 0; k < arity_of(step.op); ++k)
      *arguments[k] = static_cast<int>(random.chance(50) ? values - 1 : random.between(0, values - 1));
    step.a = 0.3, step.b = 0.7;
    params.program.push_back(step);
  }
  return params;
}

TEST(PointwiseTyped, RandomProgramsEqualTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    TestRandom random(seed);
    const DType type = kTypes[3 + seed % 9];  // f64 and the integers
    const PointwiseParams params = program(random, static_cast<int>(random.between(1, 3)), type != DType::f64);
    const int rank = static_cast<int>(random.between(0, 4));
    const Dims shape = random.chance(20) ? Dims{random.between(1, 3), random.between(300, 2000)} : random.shape(rank, 9);
    Stage stage;
    stage.params = params;
    for (int i = 0; i < params.inputs; ++i)
      stage.inputs.push_back(
          {i > 0 && random.chance(20) ? DType::boolean : type, shape, random.layout(shape, random.chance(40) ? 50 : 0)});
    stage.outputs.push_back({random.chance(20) ? DType::boolean : type, shape, random.layout(shape)});
    check(stage, "typed", "", 1e-14, random, "seed " + std::to_string(seed) + " " + std::string(name_of(type)));
    if (HasFailure()) return;
  }
}

TEST(PointwiseTyped, DoublesKeepDenormals) {
  Stage stage;
  stage.params = PointwiseParams{1, {{PointwiseOp::add, 0, 0, 0, 0, 0}}};
  stage.inputs.push_back({DType::f64, {5}, row_major({5})});
  stage.outputs = stage.inputs;
  TestTensor x(stage.inputs[0]), y(stage.outputs[0]);
  x.fill([] { return 1e-310; });
  auto kernel = make_pointwise(stage, LoopSchedule{"typed", "", 0}, Device{}, 0);
  ASSERT_TRUE(kernel.ok());
  std::byte *const in = x.origin(), *const out = y.origin();
  InlineExecutor executor;
  {
    const ScopedFlushDenormals flush;  // as inside a run
    (*kernel)->run({{&in, 1}, {&out, 1}, nullptr, &executor});
  }
  EXPECT_EQ(y.at({4}), 2e-310);
}

TEST(PointwiseTyped, CastsBetweenAllTypes) {
  for (const DType from : kTypes)
    for (const DType to : kTypes) {
      TestRandom random(static_cast<uint64_t>(from) * 20 + static_cast<uint64_t>(to));
      Stage stage;
      stage.params = PointwiseParams{1, {{PointwiseOp::identity, 0, 0, 0, 0, 0}}};
      const Dims shape{3, 5, 67};
      stage.inputs.push_back({from, shape, random.layout(shape)});
      stage.outputs.push_back({to, shape, random.layout(shape)});
      const bool single = pointwise_arithmetic(stage.inputs, stage.outputs[0]) == DType::f32;
      const std::string note = std::string(name_of(from)) + " to " + std::string(name_of(to));
      // An integer of 64 bits rounds twice on its way through double, which is how the reference reads it.
      const double bound = single && to != DType::f64 ? 1.2e-7 * (to == DType::bf16 ? 65536 : to == DType::f16 ? 8192 : 1) : 0;
      if (!single) {
        check(stage, "typed", "", bound, random, note);
      } else {
        for (const std::string& unit : test_units()) check(stage, "strips", unit, bound, random, note + " on " + unit);
      }
      if (HasFailure()) return;
    }
}

TEST(PointwiseTyped, StripsRoundOnceAtTheStore) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    TestRandom random(seed);
    const DType type = seed % 2 ? DType::f16 : DType::bf16;
    PointwiseParams params{3, {{PointwiseOp::fma, 0, 1, 2, 0, 0}, {PointwiseOp::relu, 3, 0, 0, 0, 0}}};
    const Dims shape = random.chance(50) ? Dims{2, random.between(100, 1500)} : random.shape(4, 9);
    Stage stage;
    stage.params = params;
    for (int i = 0; i < 3; ++i)
      stage.inputs.push_back({random.chance(25) ? DType::f32 : type, shape, random.layout(shape, random.chance(40) ? 50 : 0)});
    stage.outputs.push_back({type, shape, random.layout(shape)});
    // One rounding: half a unit in the last place, and a little for a double rounding of the reference.
    const double bound = type == DType::f16 ? 0x1p-10 : 0x1p-7;
    for (const std::string& unit : test_units()) check(stage, "strips", unit, bound, random, "seed " + std::to_string(seed));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sparkle::cpu
