// The CPU's gemm kernels against the family's reference: random shapes, layouts, schedules, units and epilogues.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_nest.h"
#include "backends/cpu/gemm/gemm_problem_testing.h"
#include "backends/cpu/test_units.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/stored_weights.h"
#include "families/gemm/scalar_unit.h"

namespace sparkle::cpu {
namespace {

using namespace gemm_problems;

std::vector<MathUnit> units_here() {
  std::vector<MathUnit> units;
  for (const std::string& name : test_units()) {
    MathUnit unit;
    unit.name = name;
    unit.registers = name == "avx2" ? 16 : 32;
    unit.n = static_cast<int>(tile_kernels_of(name)->lanes);
    units.push_back(unit);
  }
  return units;
}

GemmSchedule random_schedule(Case& c, const MathUnit& unit) {
  GemmSchedule s;
  s.unit = unit.name;
  s.variant = unit.registers >= 32 ? "tile6x4" : "tile6x2";
  s.mr = c.chance(0.7) ? 6 : static_cast<int>(c.pick(1, 6));
  const int widest = unit.registers >= 32 ? 4 : 2;
  s.nr = c.chance(0.7) ? widest : static_cast<int>(c.pick(1, widest));
  s.kc = c.chance(0.5) ? 0 : c.pick(1, 100);
  s.mc = c.chance(0.5) ? 0 : c.pick(1, 60);
  s.order = c.chance(0.5) ? GemmOrder::rows : GemmOrder::columns;
  s.prefetch = static_cast<int>(c.pick(0, 2));
  s.split = static_cast<int>(c.pick(0, 2));
  s.grain = c.chance(0.5) ? 0 : c.pick(1, 2000);
  return s;
}

// What rounding to a type does to numbers at most.
double rounding_of(DType type) { return type == DType::f16 ? 0x1p-11 : type == DType::bf16 ? 0x1p-8 : 0; }

// Cuts numbers off, so that the type holds them as they are.
void make_exact(std::vector<float>& values, DType type) {
  for (float& v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bits &= type == DType::f16 ? ~0x1fffu : ~0xffffu;
    if (std::abs(v) < 0x1p-14f) bits = 0;
    std::memcpy(&v, &bits, 4);
  }
}

// `variant`: another one than the plain tiles. `exact`: the type in which it keeps weights holds them.
void check(Problem& p, Case& c, const MathUnit& unit, const std::string& what, bool scalar = false,
           std::string_view variant = {}, bool exact = false) {
  const DType stored = stored_weights(variant);
  if (exact) make_exact(p.inputs[1].memory, stored);
  for (Operand& o : p.inputs) p.stage.inputs.push_back(o.desc);
  p.stage.outputs = {p.output.desc};
  const auto& params = get<GemmParams>(p.stage.params);
  Device device;
  device.units = {unit};
  GemmSchedule schedule = random_schedule(c, unit);
  if (scalar) schedule.unit = kScalarUnit;
  if (!variant.empty()) schedule.variant = variant;
  if (variant == kRowDots) schedule.nr = static_cast<int>(c.pick(1, 4));
  SCOPED_TRACE(what + " " + to_text(params) + " " + to_text(schedule) + " x=" + p.inputs[0].desc.shape.to_string() +
               " w=" + p.inputs[1].desc.shape.to_string() + " y=" + p.output.desc.shape.to_string());
  const bool constant = stored != DType::f32 || c.chance(0.6);
  auto made = make_gemm(p.stage, schedule, device, constant ? 2u : 0u);
  ASSERT_TRUE(made.ok()) << made.error().message;
  run_and_compare(p, c, **made, constant, exact ? 0 : rounding_of(stored));
}

TEST(GemmKernel, window_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 0; seed < static_cast<uint32_t>(cases_on(unit.name, 400)); ++seed) {
      Case c(seed);
      Problem p = window_problem(c);
      check(p, c, unit, "seed " + std::to_string(seed));
      if (HasFatalFailure()) return;
    }
}

TEST(GemmKernel, dense_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 1000; seed < 1000 + static_cast<uint32_t>(cases_on(unit.name, 400)); ++seed) {
      Case c(seed);
      Problem p = dense_problem(c);
      check(p, c, unit, "seed " + std::to_string(seed));
      if (HasFatalFailure()) return;
    }
}

// Whatever the planner would do with them: sums shorter than a vector too, and cut into chunks.
TEST(GemmKernel, row_dots_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 0; seed < static_cast<uint32_t>(cases_on(unit.name, 200)); ++seed) {
      Case c(seed);
      Problem p = c.chance(0.5) ? window_problem(c) : dense_problem(c);
      check(p, c, unit, "row dots, seed " + std::to_string(seed), false, kRowDots);
      if (HasFatalFailure()) return;
    }
}

TEST(GemmKernel, scalar_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 2000; seed < 2000 + static_cast<uint32_t>(cases_on(unit.name, 200)); ++seed) {
      Case c(seed);
      Problem p = c.chance(0.7) ? window_problem(c) : dense_problem(c);
      check(p, c, unit, "seed " + std::to_string(seed), true);
      if (HasFatalFailure()) return;
    }
}

TEST(GemmKernel, stored_weights_like_reference) {
  for (const MathUnit& unit : units_here())
    for (const std::string_view type : {"half", "bfloat"}) {
      const std::string variant = std::string(type) + (unit.registers >= 32 ? "6x4" : "6x2");
      for (uint32_t seed = 3000; seed < 3000 + static_cast<uint32_t>(cases_on(unit.name, 300)); ++seed) {
        Case c(seed);
        Problem p = c.chance(0.6) ? window_problem(c) : dense_problem(c);
        check(p, c, unit, variant + " seed " + std::to_string(seed), false, variant, c.chance(0.5));
        if (HasFatalFailure()) return;
      }
    }
}

TEST(GemmKernel, stored_weights_are_rounded_to_nearest_even) {
  for (const MathUnit& unit : units_here())
    for (const DType type : {DType::f16, DType::bf16}) {
      const TileKernels tiles = tile_kernels_16(unit.name, type);
      const float step = type == DType::f16 ? 0x1p-10f : 0x1p-7f;  // between 1 and the next number
      const std::vector<float> one{1, 1 + step / 2, 1 + step * 0.51f, 1 + step * 1.5f, -1 - step / 2, 0, 65504, -0x1p-14f};
      const std::vector<float> want{1, 1, 1 + step, 1 + 2 * step, -1, 0, type == DType::f16 ? 65504.f : 65536.f, -0x1p-14f};
      std::vector<float> from(static_cast<size_t>(8 * tiles.lanes));
      for (size_t i = 0; i < from.size(); ++i) from[i] = one[i % 8];
      std::vector<uint16_t> to(from.size());
      tiles.narrow(from.data(), to.data(), static_cast<int64_t>(from.size()));
      for (size_t i = 0; i < from.size(); ++i) {
        const float w = want[i % 8];
        uint32_t bits;
        std::memcpy(&bits, &w, 4);
        // Normal numbers of f16 have their exponents 112 lower and 13 bits less of the mantissa.
        const uint32_t size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
        const uint32_t half = sign | (size == 0 ? 0 : (size >> 13) - (112u << 10));
        EXPECT_EQ(to[i], type == DType::f16 ? half : bits >> 16) << unit.name << " " << from[i];
      }
    }
}

TEST(GemmKernel, stored_weights_must_be_constant) {
  const auto units = units_here();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  Device device;
  device.units = units;
  GemmParams params;
  params.loader = Loader::dense;
  const Stage stage{
      params, {dense_desc(DType::f32, {1, 20}), dense_desc(DType::f32, {20, 32})}, {dense_desc(DType::f32, {1, 32})}};
  GemmSchedule schedule;
  schedule.unit = units[0].name;
  schedule.nr = 2;
  schedule.variant = "half6x2";
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::backend_lacks_variant);
  const auto half = make_gemm(stage, schedule, device, 2);
  schedule.variant = "bfloat6x2";
  const auto bfloat = make_gemm(stage, schedule, device, 2);
  schedule.variant = "tile6x2";
  const auto tile = make_gemm(stage, schedule, device, 2);
  ASSERT_TRUE(half.ok() && bfloat.ok() && tile.ok());
  EXPECT_EQ(2 * (*half)->packed_bytes(1), (*tile)->packed_bytes(1));
  EXPECT_NE((*half)->packed_key(1), (*tile)->packed_key(1));
  EXPECT_NE((*half)->packed_key(1), (*bfloat)->packed_key(1));
}

// Random shapes reach these calls too; here it is certain. The kernels only count.
TEST(GemmKernel, narrow_panels_take_two_tiles_a_call) {
  static int single, tall, rows;
  single = tall = rows = 0;
  TileKernels tiles;
  tiles.lanes = 16, tiles.max_vectors = 4, tiles.tall_vectors = 2;
  const auto fill = [&]<size_t... kRows>(std::index_sequence<kRows...>) {
    (tiles.set(kRows + 1, 2,
               [](const TileCall&) {
                 ++(kRows + 1 > kMaxTileRows ? tall : single);
                 rows += static_cast<int>(kRows + 1);
               }),
     ...);
  };
  fill(std::make_index_sequence<kMaxCallRows>());
  GemmParams params;
  params.loader = Loader::dense;
  const Stage stage{
      params, {dense_desc(DType::f32, {50, 20}), dense_desc(DType::f32, {20, 32})}, {dense_desc(DType::f32, {50, 32})}};
  const GemmSchedule schedule;
  auto geometry = gemm_geometry(stage, schedule, tiles.lanes);
  ASSERT_TRUE(geometry.ok());
  std::vector<float> floats(50 * 32);
  GemmOperands operands;
  operands.a = operands.bias = floats.data();
  operands.b = floats.data();
  operands.y = floats.data();
  InlineExecutor executor;
  run_gemm(*geometry, schedule, {}, tiles, operands, executor);
  EXPECT_EQ(tall, 4);  // 9 tiles of 5 or 6 rows
  EXPECT_EQ(single, 1);
  EXPECT_EQ(rows, 50);
}

// Outputs that a network cannot tell apart must not differ by where they stand: large logits would make another class of it.
TEST(GemmKernel, columns_of_equal_weights_are_equal_to_the_bit) {
  constexpr int64_t kDepth = 157;
  for (const MathUnit& unit : units_here()) {
    const TileKernels& tiles = *tile_kernels_of(unit.name);
    Case c(7);
    std::vector<float> a(static_cast<size_t>(kMaxCallRows * 2 * kDepth));
    for (float& value : a) value = 1000 * c.value();
    for (int left = cases_on(unit.name, 400); left > 0; --left) {
      const int64_t rows = c.pick(1, 2 * kMaxTileRows + 1), n = c.pick(1, 14 * tiles.lanes);
      GemmSchedule schedule = random_schedule(c, unit);
      GemmParams params;
      params.loader = Loader::dense;
      const Stage stage{params,
                        {dense_desc(DType::f32, {rows, kDepth}), dense_desc(DType::f32, {kDepth, n})},
                        {dense_desc(DType::f32, {rows, n})}};
      auto geometry = gemm_geometry(stage, schedule, tiles.lanes);
      ASSERT_TRUE(geometry.ok());
      const std::vector<float> ones(static_cast<size_t>((kDepth + 1) * geometry->padded_n), 1),
          bias(static_cast<size_t>(geometry->padded_n));
      std::vector<float> y(static_cast<size_t>(rows * n));
      GemmOperands operands;
      operands.a = a.data(), operands.b = ones.data(), operands.bias = bias.data(), operands.y = y.data();
      InlineExecutor executor;
      run_gemm(*geometry, schedule, {}, tiles, operands, executor);
      for (int64_t i = 0; i < rows * n; ++i)
        ASSERT_EQ(y[static_cast<size_t>(i)], y[static_cast<size_t>(i / n * n)])
            << unit.name << " " << to_text(schedule) << " " << rows << "x" << n << " at " << i;
    }
  }
}

TEST(GemmKernel, errors_name_the_reason) {
  const auto units = units_here();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  Device device;
  device.units = units;
  GemmSchedule schedule;
  schedule.unit = units[0].name;
  schedule.nr = 1;
  Stage stage{GemmParams{},
              {dense_desc(DType::f32, {1, 8, 4, 4}), dense_desc(DType::f32, {8, 8, 1, 1})},
              {dense_desc(DType::f32, {1, 8, 4, 4})}};
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::layout_not_served);
  stage.inputs[0].layout = stage.outputs[0].layout = channels_last({1, 8, 4, 4});
  EXPECT_TRUE(make_gemm(stage, schedule, device, 0).ok());
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::type_not_served);
  stage.inputs[0].dtype = DType::f32;
  schedule.mr = 9;
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::backend_lacks_variant);
  schedule.mr = 6;
  schedule.unit = "abacus";
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::backend_lacks_variant);
  EXPECT_EQ(make_gemm(stage, LoopSchedule{}, device, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
