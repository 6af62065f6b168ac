// The winograd kernels of every unit and tile size against the convolution in double precision, on random shapes.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/test_tensor.h"
#include "backends/cpu/window_test_support.h"
#include "families/family.h"
#include "families/gemm/gemm_family.h"
#include "families/winograd/winograd.h"

namespace sparkle::cpu {
namespace {

using test::Operand;
using test::pick;
using test::Random;
using test::units_of_this_machine;

struct Case {
  int64_t n = 1, c = 8, h = 8, w = 8, k = 8;
  WinogradParams params;
  WinogradSchedule schedule;
  bool gaps = false, constant = true;
  int threads = 1, cores = 1;
};

std::string describe(const Case& c) {
  return "n=" + std::to_string(c.n) + " c=" + std::to_string(c.c) + " h=" + std::to_string(c.h) + " w=" + std::to_string(c.w) +
         " k=" + std::to_string(c.k) + " " + to_text(c.params) + " " + to_text(c.schedule) + " gaps=" + std::to_string(c.gaps) +
         " constant=" + std::to_string(c.constant) + " threads=" + std::to_string(c.threads);
}

Case random_case(Random& random, const std::string& unit) {
  Case c;
  const auto chance = [&](int percent) { return pick(random, 1, 100) <= percent; };
  c.n = pick(random, 1, 3), c.c = chance(20) ? pick(random, 1, 3) : pick(random, 1, 70), c.k = pick(random, 1, 150);
  c.h = pick(random, 1, 17), c.w = pick(random, 1, 17);
  c.params.tile = static_cast<int>(2 * pick(random, 1, 3));
  Window& w = c.params.window;
  w.filter = {1, 3, 3};
  for (size_t i = 1; i < 3; ++i) w.pad_begin[i] = pick(random, 0, 2), w.pad_end[i] = pick(random, 0, 2);
  if (c.h + w.pad_begin[1] + w.pad_end[1] < 3) w.pad_begin[1] = 2;
  if (c.w + w.pad_begin[2] + w.pad_end[2] < 3) w.pad_begin[2] = 2;
  Epilogue& e = c.params.epilogue;
  e.alpha = chance(20) ? 0.5 : 1;
  e.scale = chance(20), e.bias = chance(60);
  e.residuals_before = static_cast<int>(chance(30) ? pick(random, 1, 2) : 0);
  e.residuals_after = chance(20) && e.residuals_before < 2 ? 1 : 0;
  e.activation = chance(40) ? Activation::relu : static_cast<Activation>(pick(random, 0, 14));
  e.a = 0.25, e.b = 0.75;
  const bool many = unit == "avx2";
  c.schedule.variant = many ? "strip6x2" : "strip6x4";
  c.schedule.unit = unit;
  const int widest = tile_kernels_of(unit)->max_vectors;
  c.schedule.mr = chance(70) ? 6 : static_cast<int>(pick(random, 1, 6));
  c.schedule.nr = chance(70) ? widest : static_cast<int>(pick(random, 1, widest));
  c.schedule.strip = pick(random, 1, 30);
  c.schedule.prefetch = static_cast<int>(pick(random, 0, 2));
  c.schedule.ranges = pick(random, 1, 4);
  c.gaps = chance(40), c.constant = chance(70);
  c.threads = static_cast<int>(pick(random, 1, 3)), c.cores = chance(80) ? c.threads : 1;
  return c;
}

void check(Random& random, const Case& c) {
  const Window& w = c.params.window;
  const Dims x_shape{c.n, c.c, c.h, c.w};
  const Dims y_shape{c.n, c.k, c.h + w.pad_begin[1] + w.pad_end[1] - 2, c.w + w.pad_begin[2] + w.pad_end[2] - 2};
  std::vector<Operand> inputs;
  inputs.push_back(test::random_operand(random, test::channels_last_desc(random, x_shape, c.gaps)));
  inputs.push_back(test::random_operand(random, dense_desc(DType::f32, {c.k, c.c, 3, 3})));
  const Epilogue& e = c.params.epilogue;
  test::add_epilogue_operands(random, e, y_shape, c.gaps, 1, inputs);
  Operand y = test::poisoned_output(random, y_shape, c.gaps);

  const Stage stage = test::stage_of(c.params, inputs, y);
  const test::Expected expected = test::expected_of(winograd_info(), stage, inputs);

  const Device device = test::device_with(c.schedule.unit, c.cores);
  auto made = make_winograd(stage, c.schedule, device, c.constant ? 2u : 0u);
  ASSERT_TRUE(made.ok()) << made.error().message;
  test::run_kernel(**made, inputs, y, c.threads);

  // Inputs and weights are at most 1. A tile's sums are products of what its transforms made larger, and every rounding counts
  // for all outputs of the tile.
  const double grown = c.params.tile == 2 ? 4 : c.params.tile == 4 ? 20 : 100;
  const double length = static_cast<double>(9 * c.c);
  const double tolerance = 1.2e-7 * grown * (12 + 3 * std::sqrt(length)) * 2;
  EXPECT_EQ(test::compare(y, expected, tolerance), "");
}

TEST(WinogradKernel, LikeTheConvolution) {
  for (const std::string& unit : units_of_this_machine()) {
    if (!tile_kernels_of(unit)) continue;
    Random random(7);
    for (int i = 0; i < cases_on(unit, 300); ++i) {
      const Case c = random_case(random, unit);
      SCOPED_TRACE(describe(c));
      check(random, c);
      if (HasFailure()) return;
    }
  }
}

TEST(WinogradKernel, ErrorsNameTheReason) {
  const auto units = units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  const Device device = test::device_with(units[0]);
  WinogradParams params;
  params.window.filter = {1, 3, 3};
  Stage stage{params,
              {dense_desc(DType::f32, {1, 8, 4, 4}), dense_desc(DType::f32, {8, 8, 3, 3})},
              {dense_desc(DType::f32, {1, 8, 2, 2})}};
  WinogradSchedule schedule;
  schedule.unit = units[0];
  schedule.nr = 1;
  const auto reason = [&] { return make_winograd(stage, schedule, device, 0).error().reason; };
  EXPECT_EQ(reason(), Reason::layout_not_served);
  stage.inputs[0].layout = channels_last({1, 8, 4, 4}), stage.outputs[0].layout = channels_last({1, 8, 2, 2});
  EXPECT_TRUE(make_winograd(stage, schedule, device, 0).ok());
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(reason(), Reason::type_not_served);
  stage.inputs[0].dtype = DType::f32;
  params.tile = 3;
  stage.params = params;
  EXPECT_EQ(reason(), Reason::backend_lacks_variant);
  params.tile = 4, params.window.stride = {1, 2, 2};
  stage.params = params;
  EXPECT_EQ(reason(), Reason::filter_not_served);
  schedule.nr = 9;
  EXPECT_EQ(reason(), Reason::backend_lacks_variant);
  EXPECT_EQ(make_winograd(stage, LoopSchedule{}, device, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
