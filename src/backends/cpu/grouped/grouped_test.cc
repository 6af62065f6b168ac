// The grouped kernels of every unit against the convolution in double precision, on random shapes.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/grouped/grouped_rows.h"
#include "backends/cpu/test_tensor.h"
#include "backends/cpu/window_test_support.h"
#include "families/family.h"
#include "families/gemm/gemm_family.h"
#include "families/grouped/grouped.h"

namespace sparkle::cpu {
namespace {

using test::Operand;
using test::pick;
using test::Random;
using test::units_of_this_machine;

struct Case {
  int64_t n = 1, depth = 4, h = 8, w = 8;
  GroupedParams params;
  GroupedSchedule schedule;
  bool gaps = false, constant = true;
  int threads = 1;
};

std::string describe(const Case& c) {
  return "n=" + std::to_string(c.n) + " depth=" + std::to_string(c.depth) + " h=" + std::to_string(c.h) +
         " w=" + std::to_string(c.w) + " " + to_text(c.params) + " " + to_text(c.schedule) + " gaps=" + std::to_string(c.gaps) +
         " constant=" + std::to_string(c.constant) + " threads=" + std::to_string(c.threads);
}

Case random_case(Random& random, const std::string& unit) {
  Case c;
  const auto chance = [&](int percent) { return pick(random, 1, 100) <= percent; };
  const int64_t lanes = grouped_kernels_of(unit)->lanes;
  c.n = pick(random, 1, 3), c.depth = int64_t{1} << pick(random, 0, lanes == 16 ? 4 : lanes == 8 ? 3 : 2);
  c.params.groups = pick(random, 1, 70 / c.depth);
  c.h = pick(random, 1, 17), c.w = pick(random, 1, 30);
  Window& w = c.params.window;
  for (size_t i = 1; i < 3; ++i) {
    w.filter[i] = pick(random, 1, 5), w.stride[i] = chance(60) ? 1 : pick(random, 1, 3);
    w.dilation[i] = chance(70) ? 1 : pick(random, 1, 2);
    const int64_t reach = (w.filter[i] - 1) * w.dilation[i] + 1;
    w.pad_begin[i] = pick(random, 0, reach), w.pad_end[i] = pick(random, 0, 2);
    const int64_t size = i == 1 ? c.h : c.w;
    if (size + w.pad_begin[i] + w.pad_end[i] < reach) w.pad_begin[i] = reach;
  }
  Epilogue& e = c.params.epilogue;
  e.alpha = chance(20) ? 0.5 : 1;
  e.scale = chance(20), e.bias = chance(60);
  e.residuals_before = static_cast<int>(chance(30) ? pick(random, 1, 2) : 0);
  e.residuals_after = chance(20) && e.residuals_before < 2 ? 1 : 0;
  e.activation = chance(40) ? Activation::relu : static_cast<Activation>(pick(random, 0, 14));
  e.a = 0.25, e.b = 0.75;
  c.schedule.unit = unit, c.schedule.variant = chance(50) ? "permute" : "spread";
  c.schedule.columns = pick(random, 1, 8);
  c.schedule.rows = chance(50) ? 0 : pick(random, 1, 6);
  c.gaps = chance(40), c.constant = chance(70);
  c.threads = static_cast<int>(pick(random, 1, 3));
  return c;
}

void check(Random& random, const Case& c) {
  const Window& w = c.params.window;
  const int64_t channels = c.depth * c.params.groups;
  const auto outputs = [&](size_t i, int64_t size) {
    return (size + w.pad_begin[i] + w.pad_end[i] - (w.filter[i] - 1) * w.dilation[i] - 1) / w.stride[i] + 1;
  };
  const Dims x_shape{c.n, channels, c.h, c.w}, y_shape{c.n, channels, outputs(1, c.h), outputs(2, c.w)};
  std::vector<Operand> inputs;
  inputs.push_back(test::random_operand(random, test::channels_last_desc(random, x_shape, c.gaps)));
  inputs.push_back(test::random_operand(random, dense_desc(DType::f32, {channels, c.depth, w.filter[1], w.filter[2]})));
  const Epilogue& e = c.params.epilogue;
  test::add_epilogue_operands(random, e, y_shape, c.gaps, 1, inputs);
  Operand y = test::poisoned_output(random, y_shape, c.gaps);

  const Stage stage = test::stage_of(c.params, inputs, y);
  const test::Expected expected = test::expected_of(grouped_info(), stage, inputs);

  const Device device = test::device_with(c.schedule.unit);
  auto made = make_grouped(stage, c.schedule, device, c.constant ? 2u : 0u);
  if (!made.ok() && made.error().reason == Reason::filter_not_served) return;  // too large for the ring
  ASSERT_TRUE(made.ok()) << made.error().message;
  test::run_kernel(**made, inputs, y, c.threads);

  // Inputs and weights are at most 1 and of any sign: sums of t products stay near sqrt(t), each of t roundings is at most half
  // an eps of that and they too add up at random. Six deviations; scale, residuals and activations at most double it.
  const auto length = static_cast<double>(c.depth * w.taps());
  const double tolerance = 1.2e-7 * (12 + 2 * length);
  EXPECT_EQ(test::compare(y, expected, tolerance), "");
}

TEST(GroupedKernel, LikeTheConvolution) {
  for (const std::string& unit : units_of_this_machine()) {
    if (!grouped_kernels_of(unit)) continue;
    Random random(7);
    for (int i = 0; i < 300; ++i) {
      const Case c = random_case(random, unit);
      SCOPED_TRACE(describe(c));
      check(random, c);
      if (HasFailure()) return;
    }
  }
}

TEST(GroupedKernel, ErrorsNameTheReason) {
  const auto units = units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  const Device device = test::device_with(units[0]);
  GroupedParams params;
  params.groups = 2;
  Stage stage{params,
              {dense_desc(DType::f32, {1, 8, 4, 4}), dense_desc(DType::f32, {8, 4, 1, 1})},
              {dense_desc(DType::f32, {1, 8, 4, 4})}};
  GroupedSchedule schedule;
  schedule.unit = units[0];
  const auto reason = [&] { return make_grouped(stage, schedule, device, 0).error().reason; };
  EXPECT_EQ(reason(), Reason::layout_not_served);
  stage.inputs[0].layout = stage.outputs[0].layout = channels_last({1, 8, 4, 4});
  EXPECT_TRUE(make_grouped(stage, schedule, device, 0).ok());
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(reason(), Reason::type_not_served);
  stage.inputs[0].dtype = DType::f32;
  params.groups = 2, params.window.filter = {1, 99, 1};
  stage.params = params;
  EXPECT_EQ(reason(), Reason::filter_not_served);
  EXPECT_EQ(make_grouped(stage, LoopSchedule{}, device, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
