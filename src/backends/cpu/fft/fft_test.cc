// The fft kernels of every unit against the convolution in double precision, on random shapes.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/fft/fft_lines.h"
#include "backends/cpu/test_tensor.h"
#include "backends/cpu/window_test_support.h"
#include "families/family.h"
#include "families/fft/fft.h"
#include "families/fft/fft_axis.h"

namespace sparkle::cpu {
namespace {

using test::Operand;
using test::pick;
using test::Random;
using test::units_of_this_machine;

struct Case {
  int64_t n = 1, depth = 1, filters = 1;  // of a group
  int64_t h = 8, w = 8;
  bool one_axis = false;
  FftParams params;
  FftSchedule schedule;
  bool gaps = false, constant = true;
  int threads = 1, cores = 1;
};

std::string describe(const Case& c) {
  return "n=" + std::to_string(c.n) + " depth=" + std::to_string(c.depth) + " filters=" + std::to_string(c.filters) +
         " h=" + std::to_string(c.h) + " w=" + std::to_string(c.w) + " one_axis=" + std::to_string(c.one_axis) + " " +
         to_text(c.params) + " " + to_text(c.schedule) + " gaps=" + std::to_string(c.gaps) +
         " constant=" + std::to_string(c.constant) + " threads=" + std::to_string(c.threads) +
         " cores=" + std::to_string(c.cores);
}

int64_t outputs(const Case& c, size_t i) {
  const Window& w = c.params.window;
  return ((i == 1 ? c.h : c.w) + w.pad_begin[i] + w.pad_end[i] - (w.filter[i] - 1) * w.dilation[i] - 1) / w.stride[i] + 1;
}

Dims shape(const Case& c, int64_t channels, int64_t h, int64_t w) {
  return c.one_axis ? Dims{c.n, channels, w} : Dims{c.n, channels, h, w};
}

// Without the epilogue's operands.
Stage stage_of(const Case& c, const TensorDesc& x, const TensorDesc& y) {
  const Window& w = c.params.window;
  const int64_t k = c.filters * c.params.groups;
  const Dims filter = c.one_axis ? Dims{k, c.depth, w.filter[2]} : Dims{k, c.depth, w.filter[1], w.filter[2]};
  return {c.params, {x, dense_desc(DType::f32, filter)}, {y}};
}

// One of the smallest sizes that serve the axis.
int64_t random_points(Random& random, const Stage& stage, size_t axis) {
  std::vector<int64_t> sizes;
  for (const int64_t points : {int64_t{1}, int64_t{2}, int64_t{3}})
    if (FftAxis a = fft_axis(stage, axis); cut(a, points)) sizes.push_back(points);
  for (const int64_t points : fft_sizes(4, 60))
    if (FftAxis a = fft_axis(stage, axis); sizes.size() < 9 && cut(a, points)) sizes.push_back(points);
  return sizes[static_cast<size_t>(pick(random, 0, static_cast<int64_t>(sizes.size()) - 1))];
}

Case random_case(Random& random, const std::string& unit) {
  Case c;
  const auto chance = [&](int percent) { return pick(random, 1, 100) <= percent; };
  c.n = pick(random, 1, 3);
  const bool depthwise = chance(40);
  c.depth = depthwise ? 1 : pick(random, 1, 20), c.filters = depthwise && chance(80) ? 1 : pick(random, 1, 20);
  c.params.groups = depthwise ? pick(random, 1, 40) : chance(70) ? 1 : pick(random, 1, 4);
  c.one_axis = chance(40);
  c.h = c.one_axis ? 1 : pick(random, 1, 20), c.w = c.one_axis ? pick(random, 1, 300) : pick(random, 1, 20);
  Window& w = c.params.window;
  for (size_t i = c.one_axis ? 2 : 1; i < 3; ++i) {
    const bool large = c.one_axis && chance(50);
    w.filter[i] = chance(20) ? 1 : pick(random, 2, large ? 80 : 14), w.stride[i] = chance(60) ? 1 : pick(random, 1, 3);
    w.dilation[i] = chance(70) ? 1 : pick(random, 1, 3);
    const int64_t reach = (w.filter[i] - 1) * w.dilation[i] + 1, size = i == 1 ? c.h : c.w;
    w.pad_begin[i] =
        chance(10) ? -pick(random, 0, std::min<int64_t>(2, size - 1)) : pick(random, 0, chance(80) ? reach / 2 : reach);
    w.pad_end[i] = pick(random, 0, reach / 2);
    if (size + w.pad_begin[i] + w.pad_end[i] < reach) w.pad_begin[i] = reach;
  }
  Epilogue& e = c.params.epilogue;
  e.alpha = chance(20) ? 0.5 : 1;
  e.scale = chance(20), e.bias = chance(60);
  e.residuals_before = static_cast<int>(chance(30) ? pick(random, 1, 2) : 0);
  e.residuals_after = chance(20) && e.residuals_before < 2 ? 1 : 0;
  e.activation = chance(40) ? Activation::relu : static_cast<Activation>(pick(random, 0, 14));
  e.a = 0.25, e.b = 0.75;
  c.gaps = chance(40), c.constant = chance(70);
  c.threads = static_cast<int>(pick(random, 1, 3)), c.cores = chance(80) ? c.threads : 1;
  const TensorDesc x = test::channels_last_desc(random, shape(c, c.depth * c.params.groups, c.h, c.w), false);
  const TensorDesc y =
      test::channels_last_desc(random, shape(c, c.filters * c.params.groups, outputs(c, 1), outputs(c, 2)), false);
  const Stage stage = stage_of(c, x, y);
  c.schedule.variant = chance(50) ? "tiles" : "channels";
  c.schedule.unit = unit;
  c.schedule.rows = random_points(random, stage, 1), c.schedule.columns = random_points(random, stage, 2);
  c.schedule.strip = pick(random, 1, 6);
  return c;
}

void check(Random& random, const Case& c) {
  const int64_t channels = c.depth * c.params.groups;
  const Dims x_shape = shape(c, channels, c.h, c.w);
  const Dims y_shape = shape(c, c.filters * c.params.groups, outputs(c, 1), outputs(c, 2));
  std::vector<Operand> inputs;
  inputs.push_back(test::random_operand(random, test::channels_last_desc(random, x_shape, c.gaps)));
  Operand y = test::poisoned_output(random, y_shape, c.gaps);
  Stage stage = stage_of(c, inputs[0].desc, y.desc);
  inputs.push_back(test::random_operand(random, stage.inputs[1]));
  test::add_epilogue_operands(random, c.params.epilogue, y_shape, c.gaps, 1, inputs);
  stage = test::stage_of(c.params, inputs, y);
  const test::Expected expected = test::expected_of(fft_info(), stage, inputs);

  const Device device = test::device_with(c.schedule.unit, c.cores);
  auto made = make_fft(stage, c.schedule, device, c.constant ? 2u : 0u);
  ASSERT_TRUE(made.ok()) << made.error().message;
  test::run_kernel(**made, inputs, y, c.threads);

  // Inputs and weights are at most 1, so a filter's spectrum is at most the root of its taps times some units, and so is a
  // tile's in its points. Each pass of the transforms and each channel's product rounds at that size.
  const double points = static_cast<double>(c.schedule.rows * c.schedule.columns);
  const double taps = static_cast<double>(c.params.window.taps());
  const double sum = std::sqrt(static_cast<double>(c.depth) * taps);
  const double tolerance = 1.2e-7 * (2 * std::log2(2 * points) + std::sqrt(static_cast<double>(c.depth))) * (2 + 2 * sum);
  EXPECT_EQ(test::compare(y, expected, tolerance), "");
}

TEST(FftKernel, LikeTheConvolution) {
  for (const std::string& unit : units_of_this_machine()) {
    if (!fft_kernels_of(unit)) continue;
    Random random(11);
    for (int i = 0; i < cases_on(unit, 300); ++i) {
      const Case c = random_case(random, unit);
      SCOPED_TRACE(describe(c));
      check(random, c);
      if (HasFailure()) return;
    }
  }
}

// Transforms long enough to go through their passes part by part.
TEST(FftKernel, LongLines) {
  for (const std::string& unit : units_of_this_machine()) {
    if (!fft_kernels_of(unit)) continue;
    Random random(12);
    for (const int64_t points : {600, 1024, 1536, 3840}) {
      Case c;
      c.one_axis = true, c.h = 1, c.w = 2000, c.depth = 2, c.filters = 3;
      c.params.window.filter[2] = 500, c.params.window.pad_begin[2] = 20;
      c.schedule = {points % 2 == 0 && points > 1000 ? "tiles" : "channels", unit, 1, points, 1};
      SCOPED_TRACE(describe(c));
      check(random, c);
      if (HasFailure()) return;
    }
  }
}

TEST(FftKernel, ErrorsNameTheReason) {
  const auto units = units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  const Device device = test::device_with(units[0]);
  FftParams params;
  params.window.filter = {1, 9, 9};
  Stage stage{params,
              {dense_desc(DType::f32, {1, 8, 16, 16}), dense_desc(DType::f32, {8, 8, 9, 9})},
              {dense_desc(DType::f32, {1, 8, 8, 8})}};
  FftSchedule schedule{"channels", units[0], 16, 16, 1};
  const auto reason = [&] { return make_fft(stage, schedule, device, 0).error().reason; };
  EXPECT_EQ(reason(), Reason::layout_not_served);
  stage.inputs[0].layout = channels_last({1, 8, 16, 16}), stage.outputs[0].layout = channels_last({1, 8, 8, 8});
  EXPECT_TRUE(make_fft(stage, schedule, device, 0).ok());
  schedule.columns = 14;  // not a product of 2, 3 and 5
  EXPECT_EQ(reason(), Reason::filter_not_served);
  schedule.columns = 8;  // less than the filter
  EXPECT_EQ(reason(), Reason::filter_not_served);
  schedule.columns = 16;
  params.groups = 3;
  stage.params = params;
  EXPECT_EQ(reason(), Reason::groups_not_served);
  params.groups = 1;
  stage.params = params;
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(reason(), Reason::type_not_served);
  stage.inputs[0].dtype = DType::f32;
  schedule.variant = "other";
  EXPECT_EQ(reason(), Reason::backend_lacks_variant);
  EXPECT_EQ(make_fft(stage, LoopSchedule{}, device, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
