// The direct kernels of every unit against the convolution in double precision, on random shapes, each way and each layout.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/direct/direct_rows.h"
#include "backends/cpu/test_tensor.h"
#include "backends/cpu/window_test_support.h"
#include "families/direct/direct.h"
#include "families/family.h"
#include "families/gemm/gemm_family.h"

namespace sparkle::cpu {
namespace {

using test::Operand;
using test::pick;
using test::Random;
using test::units_of_this_machine;

struct Case {
  int64_t n = 1, c = 1, k = 4, h = 8, w = 8;
  DirectParams params;
  DirectSchedule schedule;
  bool gaps = false, planes = false, constant = true;
  int threads = 1;
};

std::string describe(const Case& c) {
  return "n=" + std::to_string(c.n) + " c=" + std::to_string(c.c) + " k=" + std::to_string(c.k) + " h=" + std::to_string(c.h) +
         " w=" + std::to_string(c.w) + " " + to_text(c.params) + " " + to_text(c.schedule) + " gaps=" + std::to_string(c.gaps) +
         " planes=" + std::to_string(c.planes) + " constant=" + std::to_string(c.constant) +
         " threads=" + std::to_string(c.threads);
}

Case random_case(Random& random, const std::string& unit, const std::string& variant) {
  Case c;
  const auto chance = [&](int percent) { return pick(random, 1, 100) <= percent; };
  c.n = pick(random, 1, 3), c.c = chance(60) ? pick(random, 1, 4) : pick(random, 1, 16);
  c.k = chance(50) ? pick(random, 1, 9) : pick(random, 1, 100);
  c.h = pick(random, 1, 14), c.w = chance(50) ? pick(random, 1, 30) : pick(random, 1, 130);
  Window& w = c.params.window;
  const bool slides = variant == "slide", pointwise = !slides && chance(20);
  if (pointwise) c.c = pick(random, 1, most_direct_channels(Window{}));
  for (size_t i = 1; i < 3; ++i) {
    w.filter[i] = pointwise ? 1 : slides && i == 2 ? 2 * pick(random, 1, 3) + 1 : pick(random, 1, 8);
    w.stride[i] = chance(50) ? 1 : pick(random, 1, slides && i == 2 ? 1 : 4);
    w.dilation[i] = chance(70) || (slides && i == 2) ? 1 : pick(random, 1, 3);
    const int64_t reach = (w.filter[i] - 1) * w.dilation[i] + 1;
    w.pad_begin[i] = chance(40) ? 0 : pick(random, -1, reach), w.pad_end[i] = chance(40) ? 0 : pick(random, 0, reach);
    const int64_t size = i == 1 ? c.h : c.w;
    if (size + w.pad_begin[i] + w.pad_end[i] < reach) w.pad_begin[i] = reach;
  }
  if (variant != "pixels" && chance(40)) {
    c.params.groups = pick(random, 2, 12);
    c.c = (chance(60) ? 4 * pick(random, 1, 4) : pick(random, 1, 16)) * c.params.groups,
    c.k = pick(random, 1, 40) * c.params.groups;
  }
  Epilogue& e = c.params.epilogue;
  const bool simple = chance(50);
  e.bias = chance(60);
  e.activation = chance(50) ? Activation::relu : chance(50) ? Activation::clip : Activation::none;
  if (!simple) {
    e.alpha = chance(20) ? 0.5 : 1;
    e.scale = chance(20);
    e.residuals_before = static_cast<int>(chance(40) ? pick(random, 1, 2) : 0);
    e.residuals_after = chance(20) && e.residuals_before < 2 ? 1 : 0;
    e.activation = static_cast<Activation>(pick(random, 0, 14));
  }
  e.a = 0.25, e.b = 0.75;
  c.schedule.variant = variant, c.schedule.unit = unit;
  c.schedule.maps = static_cast<int>(pick(random, 1, 4));
  c.schedule.pixels = slides ? 17 : static_cast<int>(pick(random, 1, 24));
  c.schedule.columns = chance(50) ? 1000 : pick(random, 17, 40);
  c.schedule.rows = chance(50) ? 0 : pick(random, 1, 6);
  c.schedule.prefetch = chance(50) ? 0 : 2;
  c.gaps = chance(40), c.planes = chance(30), c.constant = chance(70);
  c.threads = static_cast<int>(pick(random, 1, 3));
  return c;
}

// How many of the cases ran: those that a variant refuses do not.
int check(Random& random, const Case& c) {
  const Window& w = c.params.window;
  const auto outputs = [&](size_t i, int64_t size) {
    return (size + w.pad_begin[i] + w.pad_end[i] - (w.filter[i] - 1) * w.dilation[i] - 1) / w.stride[i] + 1;
  };
  const Dims x_shape{c.n, c.c, c.h, c.w}, y_shape{c.n, c.k, outputs(1, c.h), outputs(2, c.w)};
  std::vector<Operand> inputs;
  inputs.push_back(test::random_operand(
      random, c.planes ? dense_desc(DType::f32, x_shape) : test::channels_last_desc(random, x_shape, c.gaps)));
  inputs.push_back(
      test::random_operand(random, dense_desc(DType::f32, {c.k, c.c / c.params.groups, w.filter[1], w.filter[2]})));
  const Epilogue& e = c.params.epilogue;
  test::add_epilogue_operands(random, e, y_shape, c.gaps, 1, inputs);
  Operand y = test::poisoned_output(random, y_shape, c.gaps);

  const Stage stage = test::stage_of(c.params, inputs, y);
  const test::Expected expected = test::expected_of(direct_info(), stage, inputs);

  const Device device = test::device_with(c.schedule.unit);
  auto made = make_direct(stage, c.schedule, device, c.constant ? 2u : 0u);
  if (!made.ok() && made.error().reason == Reason::filter_not_served) return 0;  // too large for the scratch
  EXPECT_TRUE(made.ok()) << made.error().message;
  if (!made.ok()) return 0;
  test::run_kernel(**made, inputs, y, c.threads);

  // Inputs and weights are at most 1 and of any sign: sums of t products stay near sqrt(t), each of t roundings is at most half
  // an eps of that and they too add up at random. Six deviations; scale, residuals and activations at most double it.
  const auto length = static_cast<double>(c.c / c.params.groups * w.taps());
  const double tolerance = 1.2e-7 * (12 + 2 * length);
  EXPECT_EQ(test::compare(y, expected, tolerance), "");
  return 1;
}

TEST(DirectKernel, LikeTheConvolution) {
  for (const std::string& unit : units_of_this_machine())
    for (const char* variant : {"pixels", "slide", "maps"}) {
      Random random(11);
      int ran = 0;
      const int cases = cases_on(unit, 400);
      for (int i = 0; i < cases; ++i) {
        const Case c = random_case(random, unit, variant);
        SCOPED_TRACE(describe(c));
        ran += check(random, c);
        if (HasFailure()) return;
      }
      EXPECT_GT(ran, 3 * cases / 8) << unit << " " << variant;
    }
}

// What the planner proposes can be compiled: every schedule of the family, shapes at random.
TEST(DirectKernel, TakesWhatThePlannerProposes) {
  const auto units = units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  Random random(13);
  int made = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string& name = units[static_cast<size_t>(pick(random, 0, static_cast<int64_t>(units.size()) - 1))];
    Case c = random_case(random, name, "maps");
    c.w = pick(random, 1, 3000);
    SCOPED_TRACE(describe(c));
    Device device;
    device.cores = static_cast<int>(pick(random, 1, 4));
    MathUnit unit;
    unit.name = name, unit.kind = UnitKind::vector_fma, unit.n = static_cast<int>(direct_kernels_of(name)->lanes);
    device.units = {unit};
    const Window& w = c.params.window;
    const int64_t q = std::max<int64_t>(1, (c.w - (w.filter[2] - 1) * w.dilation[2] - 1) / w.stride[2] + 1);
    Stage stage{DirectParams{c.params.groups, w, {}},
                {dense_desc(DType::f32, {c.n, c.c, c.h, c.w}),
                 dense_desc(DType::f32, {c.k, c.c / c.params.groups, w.filter[1], w.filter[2]})},
                {{DType::f32, {c.n, c.k, c.h, q}, channels_last({c.n, c.k, c.h, q})}}};
    for (const Variant& variant : direct_info().variants) {
      Reason why_not = Reason::none;
      for (const Schedule& schedule : direct_info().schedules(stage, variant, device, why_not)) {
        if (variant_of(schedule) == "plain") continue;
        const auto kernel = make_direct(stage, schedule, device, 2);
        EXPECT_TRUE(kernel.ok()) << to_text(schedule) << ": " << (kernel.ok() ? "" : kernel.error().message);
        made += kernel.ok();
      }
    }
  }
  EXPECT_GT(made, 300);
}

// Layers that share weights share what is packed of them where the keys are the same.
TEST(DirectKernel, KeysTellGroupsApart) {
  const auto units = units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  std::vector<std::string> keys;
  for (int64_t groups = 1; groups <= 3; groups += 2) {
    const Dims x{1, 4 * groups, 8, 8}, y{1, 24, 6, 6};
    const Stage stage{DirectParams{groups, Window{{1, 3, 3}}, {}},
                      {{DType::f32, x, channels_last(x)}, dense_desc(DType::f32, {24, 4, 3, 3})},
                      {{DType::f32, y, channels_last(y)}}};
    DirectSchedule schedule;
    schedule.unit = units[0], schedule.columns = 6, schedule.maps = 1;
    const auto kernel = make_direct(stage, schedule, test::device_with(units[0]), 2);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    keys.push_back((*kernel)->packed_key(1));
  }
  EXPECT_NE(keys[0], keys[1]);
}

TEST(DirectKernel, ErrorsNameTheReason) {
  const auto units = units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  const Device device = test::device_with(units[0]);
  DirectParams params;
  Stage stage{params,
              {dense_desc(DType::f32, {1, 2, 4, 4}), dense_desc(DType::f32, {8, 2, 1, 1})},
              {dense_desc(DType::f32, {1, 8, 4, 4})}};
  DirectSchedule schedule;
  schedule.unit = units[0], schedule.columns = 4;
  const auto reason = [&] { return make_direct(stage, schedule, device, 0).error().reason; };
  EXPECT_EQ(reason(), Reason::layout_not_served);
  stage.outputs[0].layout = channels_last({1, 8, 4, 4});
  EXPECT_TRUE(make_direct(stage, schedule, device, 0).ok());
  schedule.variant = "slide";  // no filter of one tap
  EXPECT_EQ(reason(), Reason::filter_not_served);
  schedule.variant = "other";
  EXPECT_EQ(reason(), Reason::backend_lacks_variant);
  schedule.variant = "maps";
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(reason(), Reason::type_not_served);
  stage.inputs[0].dtype = DType::f32;
  params.window.filter = {1, 99, 1};
  stage.params = params;
  EXPECT_EQ(reason(), Reason::filter_not_served);
  EXPECT_EQ(make_direct(stage, LoopSchedule{}, device, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
