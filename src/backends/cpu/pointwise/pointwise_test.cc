// Pointwise strips against the reference: random programs, shapes, layouts, broadcasts, units and thread counts.
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/test_tensor.h"
#include "families/family.h"
#include "families/pointwise/pointwise.h"

namespace sparkle::cpu {
namespace {

// Operations that are continuous enough for random programs; the others have tests of their own.
constexpr PointwiseOp kChained[] = {PointwiseOp::add,  PointwiseOp::sub,        PointwiseOp::mul,      PointwiseOp::min,
                                    PointwiseOp::max,  PointwiseOp::fma,        PointwiseOp::affine,   PointwiseOp::relu,
                                    PointwiseOp::clip, PointwiseOp::sigmoid,    PointwiseOp::tanh,     PointwiseOp::leaky_relu,
                                    PointwiseOp::abs,  PointwiseOp::hard_swish, PointwiseOp::constant, PointwiseOp::identity};

struct Case {
  Stage stage;
  std::vector<TestTensor> inputs;
};

// Runs a stage on each unit and with one and two threads; compares with the reference within `bound` * max(1, |want|).
void check(Case& test, double bound, const std::string& note) {
  const TensorDesc& out = test.stage.outputs[0];
  std::vector<TensorView> views;
  std::vector<std::byte*> pointers;
  for (TestTensor& input : test.inputs) views.push_back(input.view()), pointers.push_back(input.origin());
  TestTensor want(out);
  const TensorView want_view = want.view();
  pointwise_info().reference(test.stage.params, views, {&want_view, 1});
  for (const std::string& unit : test_units()) {
    for (int threads : {1, 2}) {
      LoopSchedule schedule{"strips", unit, 128};
      auto kernel = make_pointwise(test.stage, schedule, Device{}, 0);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message << " " << note;
      ThreadPool pool(threads);
      TestTensor got(out);
      std::byte* const result = got.origin();
      (*kernel)->run({pointers, {&result, 1}, nullptr, &pool});
      ASSERT_TRUE(got.sentinels_hold()) << note << " on " << unit;
      bool good = true;
      for_each_index(out.shape, [&](const Dims& at) {
        const double w = want.at(at), g = got.at(at);
        if (!good || close(g, w, bound * std::max(1.0, std::abs(w)))) return;
        good = false;
        ADD_FAILURE() << note << " on " << unit << ": at " << at.to_string() << " got " << g << " want " << w << " "
                      << expression(get<PointwiseParams>(test.stage.params)) << " shape " << out.shape.to_string();
      });
      if (!good) return;
    }
  }
}

TEST(Pointwise, RandomProgramsMatchTheReference) {
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    TestRandom random(seed);
    PointwiseParams params;
    params.inputs = static_cast<int>(random.between(1, 4));
    const int64_t steps = random.between(1, 6);
    for (int64_t i = 0; i < steps; ++i) {
      PointwiseInstruction step;
      step.op = kChained[random.between(0, std::size(kChained) - 1)];
      const int64_t values = params.inputs + i;
      int* const arguments[] = {&step.x, &step.y, &step.z};
      // Mostly the newest value, so that chains are long.
      for (int k = 0; k < arity_of(step.op); ++k)
        *arguments[k] = static_cast<int>(random.chance(50) ? values - 1 : random.between(0, values - 1));
      step.a = -0.4, step.b = 0.9;
      params.program.push_back(step);
    }
    const int rank = static_cast<int>(random.between(0, 5));
    const Dims shape = random.chance(20) ? Dims{random.between(1, 3), random.between(500, 3000)}
                                         : random.shape(rank, rank <= 2   ? 80
                                                              : rank == 3 ? 24
                                                                          : 9);
    Case test;
    for (int i = 0; i < params.inputs; ++i) {
      test.stage.inputs.push_back({random.chance(15)   ? DType::boolean
                                   : random.chance(10) ? DType::u8
                                                       : DType::f32,
                                   shape, random.layout(shape, random.chance(40) ? 50 : 0)});
      test.inputs.emplace_back(test.stage.inputs.back());
      test.inputs.back().fill([&] {
        return test.stage.inputs.back().dtype == DType::f32 ? random.normal() : random.chance(50) ? 1.0 : 0.0;
      });
    }
    test.stage.outputs.push_back({DType::f32, shape, random.layout(shape)});
    test.stage.params = params;
    check(test, 2e-5, "seed " + std::to_string(seed));
    if (HasFailure()) return;
  }
}

TEST(Pointwise, EveryOperationMatchesItsDefinition) {
  for (int k = 0; k <= static_cast<int>(PointwiseOp::mish); ++k) {
    const auto op = static_cast<PointwiseOp>(k);
    TestRandom random(static_cast<uint64_t>(k) + 1);
    Case test;
    PointwiseParams params;
    params.inputs = std::max(1, arity_of(op));
    PointwiseInstruction step;
    step.op = op, step.x = 0, step.y = std::min(1, params.inputs - 1), step.z = std::min(2, params.inputs - 1);
    step.a = 0.3, step.b = 0.7;
    params.program.push_back(step);
    const Dims shape{3, 77};
    for (int i = 0; i < params.inputs; ++i) {
      test.stage.inputs.push_back({DType::f32, shape, row_major(shape)});
      test.inputs.emplace_back(test.stage.inputs.back());
      // Multiples of 1/2, so that comparisons see equal values; zero is among them.
      test.inputs.back().fill([&] { return std::round(random.normal() * 4) / 2; });
    }
    test.stage.outputs.push_back({DType::f32, shape, row_major(shape)});
    test.stage.params = params;
    check(test, 2e-6, std::string(name_of(op)));
    const bool truth = op == PointwiseOp::less || op == PointwiseOp::equal || op == PointwiseOp::is_nan;
    if (truth) {
      test.stage.outputs[0] = {DType::boolean, shape, channels_last(shape)};
      check(test, 0, std::string(name_of(op)) + " to bool");
    }
  }
}

TEST(Pointwise, FusesSumAndClipButKeepsSharedValues) {
  // relu(x * y + x) and then a second use of the product, which must survive.
  PointwiseParams params;
  params.inputs = 2;
  params.program = {{PointwiseOp::mul, 0, 1, 0, 0, 0},
                    {PointwiseOp::add, 2, 0, 0, 0, 0},
                    {PointwiseOp::relu, 3, 0, 0, 0, 0},
                    {PointwiseOp::sub, 4, 2, 0, 0, 0}};
  for (const bool shared : {true, false}) {
    if (!shared) params.program.pop_back();
    TestRandom random(9);
    Case test;
    const Dims shape{2, 5, 7, 33};
    for (int i = 0; i < 2; ++i) {
      test.stage.inputs.push_back({DType::f32, shape, channels_last(shape)});
      if (i == 1) test.stage.inputs[1].layout.strides = Dims{0, 1, 0, 0};
      test.inputs.emplace_back(test.stage.inputs.back());
      test.inputs.back().fill([&] { return random.normal(); });
    }
    test.stage.outputs.push_back({DType::f32, shape, channels_last(shape)});
    test.stage.params = params;
    check(test, 1e-6, shared ? "shared" : "single");
  }
}

TEST(Pointwise, RefusesWhatItCannotServe) {
  Stage stage;
  const Dims shape{4, 4};
  PointwiseParams params;
  params.program.push_back({});
  stage.params = params;
  stage.inputs.push_back({DType::i64, shape, row_major(shape)});
  stage.outputs.push_back({DType::i64, shape, row_major(shape)});
  for (const std::string& unit : test_units())
    EXPECT_EQ(make_pointwise(stage, LoopSchedule{"strips", unit, 0}, Device{}, 0).error().reason, Reason::type_not_served);
  EXPECT_EQ(make_pointwise(stage, LoopSchedule{"none", "avx2", 0}, Device{}, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
