// The Vulkan kernels over rows (reduce, softmax, normalize, rotary, scan) against the families' references: random shapes, axes
// and layouts, rows long and short, few and many.
#include "backends/vulkan/kernels/rows/rows.h"

#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/normalize/normalize.h"
#include "families/reduce/gpu_types.h"
#include "families/registry.h"
#include "families/rotary/rotary.h"
#include "families/scan/scan.h"
#include "families/softmax/softmax.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

const Schedule kRows = LoopSchedule{"rows_gpu", "fma-f32", 0}, kParts = LoopSchedule{"parts_gpu", "fma-f32", 0};

struct Case {
  Stage stage;
  std::vector<TestOperand> inputs, outputs;

  void input(const TensorDesc& desc, TestRandom& random, double scale = 1, double offset = 0) {
    stage.inputs.push_back(desc);
    inputs.emplace_back(desc);
    inputs.back().fill([&] { return random.normal() * scale + offset; });
  }
  void output(const TensorDesc& desc) {
    stage.outputs.push_back(desc);
    outputs.emplace_back(desc);
  }
  void check(VulkanBackend& backend, double tolerance, const std::string& note, const Schedule& schedule = kRows) {
    auto wanted = reference_outputs(stage, inputs);
    const Status ran = run_stage(backend, stage, schedule, inputs, outputs, 0);
    ASSERT_TRUE(ran.ok()) << ran.error().message << " " << note;
    expect_close(outputs[0], wanted[0], tolerance,
                 note + " " + to_text(stage.params) + " " + stage.inputs[0].shape.to_string());
  }
};

// Short and long rows, few and many, along every kind of axis.
Dims random_shape(TestRandom& random) {
  if (random.chance(15)) return {random.between(1, 3), random.between(3000, 40000)};
  if (random.chance(15)) return {random.between(3000, 40000), random.between(1, 3)};
  if (random.chance(20)) return {1, random.between(1, 40), random.between(1, 30), random.between(1, 30)};
  const int rank = static_cast<int>(random.between(1, 6));
  return random.shape(rank, rank == 1 ? 3000 : rank == 2 ? 90 : rank <= 4 ? 14 : 5);
}
Dims random_axes(TestRandom& random, int rank) {
  Dims axes;
  for (int i = 0; i < rank; ++i)
    if (random.chance(50)) axes.push_back(i);
  return axes;
}

void check_reduce(DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  bool parted = false;
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    Case test;
    const Dims shape = random_shape(random), axes = random_axes(random, shape.size());
    const auto kind = static_cast<ReduceKind>(random.between(0, 9));
    Dims result = shape;
    int64_t count = 1;
    uint32_t within = 0;
    for (const int64_t axis : axes) {
      count *= shape[static_cast<int>(axis)], result[static_cast<int>(axis)] = 1;
      within |= 1u << axis;
    }
    const bool product = kind == ReduceKind::product;
    // Products of thousands of factors near 1; logarithms of sums above 0.
    const double spread = product ? 1 / std::sqrt(static_cast<double>(count)) : kind == ReduceKind::log_sum ? 0.2 : 1;
    test.input({type, shape, random.layout(shape, random.chance(20) ? 30 : 0)}, random, spread,
               product || kind == ReduceKind::log_sum ? 1 : 0);
    test.output({type, result, random.layout(result)});
    test.stage.params = ReduceParams{kind, axes};
    if (const auto r = rows_of({&test.stage.inputs[0], nullptr, nullptr, &test.stage.outputs[0]}, within, true); r.ok())
      parted = parted || r->parts > 1;
    // Each thread adds its elements one after the other.
    test.check(*backend, 6e-8 * (8 + (product ? 2 : 1) * std::sqrt(static_cast<double>(count)) * 2),
               "seed " + std::to_string(seed));
  }
  EXPECT_TRUE(parted) << "no case was cut into parts";
}

TEST(VulkanReduce, MatchesTheReference) { check_reduce(DType::f32, 110); }

// Integers and truth values to the bit, extrema of nothing included; doubles.
TEST(VulkanReduce, IntegersAndDoubles) {
  SPARKLE_NEEDS_VULKAN(backend);
  constexpr DType kTypes[] = {DType::i8,  DType::u8,  DType::i16, DType::u16,     DType::i32,
                              DType::u32, DType::i64, DType::u64, DType::boolean, DType::f64};
  for (const DType type : kTypes) {
    if (type == DType::f64 && !backend->context().features().f64) continue;
    for (uint64_t seed = 1; seed <= 16 && !::testing::Test::HasFailure(); ++seed) {
      TestRandom random(seed * 31 + static_cast<uint64_t>(type));
      const auto kind = static_cast<ReduceKind>(random.between(0, 9));
      if (!reduces_on_gpus(kind, type)) continue;
      Case test;
      Dims shape = random_shape(random);
      if (random.chance(10)) shape[0] = 0;
      const Dims axes = random_axes(random, shape.size());
      Dims result = shape;
      for (const int64_t axis : axes) result[static_cast<int>(axis)] = 1;
      const bool product = type == DType::f64 && kind == ReduceKind::product;
      test.input({type, shape, random.layout(shape, random.chance(20) ? 30 : 0)}, random, product ? 0.01 : 1, product ? 1 : 0);
      if (type == DType::boolean) {
        test.inputs[0].fill([&] { return random.chance(60) ? 1.0 : 0.0; });
      } else if (type != DType::f64) {
        test.inputs[0].fill([&] { return std::round(std::ldexp(random.normal(), static_cast<int>(random.between(0, 63)))); });
      } else if (kind == ReduceKind::log_sum) {
        test.inputs[0].fill([&] { return std::abs(random.normal()); });
      }
      test.output({type, result, random.layout(result)});
      test.stage.params = ReduceParams{kind, axes};
      test.check(*backend, type == DType::f64 ? 1e-12 : 0, std::string(name_of(type)) + " seed " + std::to_string(seed));
      // As numbers those of 64 bits could hide their last bits.
      if (type == DType::f64 || ::testing::Test::HasFailure()) continue;
      TestOperand wanted(test.stage.outputs[0]);
      const TensorView in = test.inputs[0].view(), out = wanted.view();
      info(Family::reduce).reference(test.stage.params, {&in, 1}, {&out, 1});
      EXPECT_TRUE(test.outputs[0].bytes == wanted.bytes) << name_of(type) << " " << to_text(test.stage.params);
    }
  }
}

TEST(VulkanReduce, ExtremesAndNothing) {
  SPARKLE_NEEDS_VULKAN(backend);
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> rows = {{kInfinity, 1, 2},
                                                 {-kInfinity, 1, 2},
                                                 {-kInfinity, -kInfinity, -kInfinity},
                                                 {kNan, 1, kInfinity},
                                                 {1, kNan, -5},
                                                 {200, 201, 199},
                                                 {-200, -201, -kInfinity},
                                                 {kInfinity, kInfinity, 0}};
  for (int kind = 0; kind < 10; ++kind) {
    Case test;
    TestRandom random(1);
    test.input(dense_desc(DType::f32, {8, 3}), random);
    int at = 0;
    test.inputs[0].fill([&] {
      const auto element = static_cast<size_t>(at++);
      return rows[element / 3][element % 3];
    });
    test.output(dense_desc(DType::f32, {8, 1}));
    test.stage.params = ReduceParams{static_cast<ReduceKind>(kind), {1}};
    test.check(*backend, 1e-6, "extremes");
    Case nothing;
    nothing.input(dense_desc(DType::f32, {4, 0}), random);
    nothing.output(dense_desc(DType::f32, {4, 1}));
    nothing.stage.params = test.stage.params;
    nothing.check(*backend, 0, "nothing to reduce");
  }
}

void check_softmax(DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    Case test;
    const Dims shape = random_shape(random);
    SoftmaxParams params;
    params.first_axis = static_cast<int>(random.between(0, shape.size() - 1));
    params.last_axis =
        random.chance(70) ? params.first_axis : static_cast<int>(random.between(params.first_axis, shape.size() - 1));
    params.logarithm = random.chance(40);
    test.input({type, shape, random.layout(shape, random.chance(20) ? 30 : 0)}, random, random.chance(20) ? 60 : 3);
    test.output({type, shape, random.layout(shape)});
    if (random.chance(10)) {
      // A row that is hidden in part, or whole.
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      test.inputs[0].fill([&] { return random.chance(70) ? -kInfinity : random.normal(); });
    }
    test.stage.params = params;
    test.check(*backend, type == DType::f64 ? 1e-13 : 3e-6, "seed " + std::to_string(seed));
  }
}

TEST(VulkanSoftmax, MatchesTheReference) { check_softmax(DType::f32, 100); }
TEST(VulkanSoftmax, Doubles) {
  SPARKLE_NEEDS_DOUBLES();
  check_softmax(DType::f64, 40);
}

// Few long rows in parts: along the innermost axis and across it, infinities and NaN in some of them.
void check_softmax_parts(DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    Case test;
    const int64_t rows = random.between(1, 3), length = random.between(8192, 30000);
    const bool innermost = random.chance(60);
    const Dims shape = innermost ? Dims{rows, length} : Dims{length, rows};
    const SoftmaxParams params{innermost, innermost, seed % 3 == 0};
    test.input({type, shape, random.layout(shape)}, random, random.chance(20) ? 60 : 3);
    test.output({type, shape, random.layout(shape)});
    const int kind = static_cast<int>(random.between(0, 5));
    if (kind == 4) test.inputs[0].fill([&] { return random.chance(99) ? -kInfinity : random.normal(); });
    if (kind == 5) {
      const double odd = random.chance(50) ? kInfinity : std::numeric_limits<double>::quiet_NaN();
      store_element(type, odd, element_at(test.inputs[0].view(), innermost ? Dims{0, length / 2} : Dims{length / 2, 0}));
    }
    test.stage.params = params;
    Reason why = Reason::none;
    const Variant& variant = *std::find_if(softmax_info().variants.begin(), softmax_info().variants.end(),
                                           [](const Variant& v) { return v.name == "parts_gpu"; });
    ASSERT_EQ(softmax_info().schedules(test.stage, variant, backend->device(), why).size(), 1u);
    test.check(*backend, 3e-6, "seed " + std::to_string(seed), kParts);
  }
}
TEST(VulkanSoftmax, LongRowsInParts) { check_softmax_parts(DType::f32, 40); }

void check_normalize(DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    Case test;
    const Dims shape = random_shape(random);
    NormalizeParams params;
    params.axes = random_axes(random, shape.size());
    params.center = random.chance(70);
    params.scale = random.chance(60);
    params.bias = random.chance(60);
    params.divisor = static_cast<NormalizeDivisor>(random.chance(60) ? 0 : random.between(1, 3));
    params.epsilon = params.divisor == NormalizeDivisor::deviation ? 1e-3 : 1e-5;
    // Means far from zero show sums of squares that are not taken from the mean.
    test.input({type, shape, random.layout(shape, 0)}, random, 1, random.chance(30) && params.center ? 30 : 0);
    if (params.scale) test.input({type, shape, random.layout(shape, 60)}, random);
    if (params.bias) test.input({type, shape, random.layout(shape, 60)}, random);
    test.output({type, shape, random.layout(shape)});
    test.stage.params = params;
    int64_t count = 1;
    for (const int64_t axis : params.axes) count *= shape[static_cast<int>(axis)];
    // A handful of elements may lie so close together that what is left of them after the mean is mostly rounding.
    if (count < 8 && params.center) continue;
    test.check(*backend, type == DType::f64 ? 1e-12 : 3e-5, "seed " + std::to_string(seed));
  }
}

TEST(VulkanNormalize, MatchesTheReference) { check_normalize(DType::f32, 110); }
TEST(VulkanNormalize, Doubles) {
  SPARKLE_NEEDS_DOUBLES();
  check_normalize(DType::f64, 60);
}

// Angles of each row, or repeated along some axes; all of a row turned, or a part of it.
void check_rotary(DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    Case test;
    const Dims shape = random_shape(random);
    Dims angles = shape;
    angles[shape.size() - 1] = random.between(0, shape.back() / 2);
    test.input({type, shape, random.layout(shape, 10)}, random);
    test.input({type, angles, random.layout(angles, 40)}, random);
    test.input({type, angles, random.layout(angles, 40)}, random);
    test.output({type, shape, random.layout(shape)});
    test.stage.params = RotaryParams{random.chance(50)};
    test.check(*backend, 2e-7, "seed " + std::to_string(seed));
  }
}
TEST(VulkanRotary, MatchesTheReference) { check_rotary(DType::f32, 110); }

// Along every axis, in both directions, rows long and few among them; integers to the bit, floats from sums that are carried
// with what rounding took.
void check_scan(DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  bool parted = false;
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, type);
    Dims shape = random_shape(s.random);
    if (s.random.chance(5)) shape[static_cast<int>(s.random.between(0, shape.size() - 1))] = 0;
    const int axis = static_cast<int>(s.random.between(0, shape.size() - 1));
    const double offset = s.random.chance(30) ? 1000 : 0;  // sums that only grow
    const bool odd = s.random.chance(10);
    s.input(s.turned(s.any(shape, s.random.chance(20) ? 30 : 0)), [&] {
      if (!is_float(type)) return static_cast<double>(s.random.between(kSignedIntegers.has(type) ? -100 : 0, 100));
      if (odd && s.random.chance(1)) return s.random.chance(50) ? std::nan("") : std::numeric_limits<double>::infinity();
      return offset + s.random.normal();
    });
    s.output(s.turned(s.any(shape)));
    s.stage.params = ScanParams{axis, s.random.chance(50), s.random.chance(50)};
    const auto r = rows_of({&s.stage.inputs[0], nullptr, nullptr, &s.stage.outputs[0]}, 1u << axis, true);
    parted = parted || (r.ok() && r->parts > 1 && shape.product() > 0);
    auto wanted = type == DType::f16 ? reference_outputs(s.stage, s.inputs) : exact_outputs(s, s.inputs);
    const Status ran = run_stage(*backend, s.stage, kRows, s.inputs, s.outputs, 0);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    expect_close(s.outputs[0], wanted[0],
                 type == DType::f64 ? 1e-11
                 : is_float(type)   ? 5e-7
                                    : 0,
                 "seed " + std::to_string(seed) + " " + to_text(s.stage.params) + " " + shape.to_string());
  }
  EXPECT_TRUE(parted);
}
TEST(VulkanScan, MatchesTheReference) { check_scan(DType::f32, 150); }
TEST(VulkanScan, IntegersAndDoubles) {
  SPARKLE_NEEDS_VULKAN(backend);
  const Features& f = backend->context().features();
  for (const DType type :
       {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64, DType::f64})
    if (size_of(type) == 1 ? f.i8 : size_of(type) == 2 ? f.f16 : type != DType::f64 || f.f64) check_scan(type, 60);
}

TEST(VulkanRows, Fp16AreAddedInFullPrecision) {
  SPARKLE_NEEDS_FP16();
  check_reduce(DType::f16, 110);
  check_softmax(DType::f16, 60);
  check_softmax_parts(DType::f16, 20);
  check_normalize(DType::f16, 80);
  check_rotary(DType::f16, 60);
  check_scan(DType::f16, 60);
}

}  // namespace
}  // namespace sparkle::vulkan
