// Every depthwise variant on every unit of this machine against the double-precision reference, on random shapes and the
// awkward ones.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/depthwise/depthwise_call.h"
#include "backends/cpu/window_test_support.h"
#include "families/depthwise/depthwise.h"
#include "families/depthwise/depthwise_reference.h"
#include "families/family.h"

namespace sparkle::cpu {
namespace {

using test::Operand;
using test::pick;
using test::Random;

struct Case {
  Dims x_shape;  // N,C,spatial
  int64_t multiplier = 1;
  DepthwiseParams params;
  bool gaps = false, constant_weights = true, odd_vectors = false;
  std::string variant = "window", unit;
  int threads = 1;
};

// Output sizes from the window, as ONNX computes them.
Dims output_shape(const Case& c) {
  const int spatial = c.x_shape.size() - 2;
  Dims shape{c.x_shape[0], c.x_shape[1] * c.multiplier};
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(3 - spatial + i);
    const Window& w = c.params.window;
    const int64_t reach = (w.filter[at] - 1) * w.dilation[at] + 1;
    const int64_t room = c.x_shape[2 + i] + w.pad_begin[at] + w.pad_end[at] - reach;
    shape.push_back(room < 0 ? 0 : room / w.stride[at] + 1);
  }
  return shape;
}

std::string describe(const Case& c) {
  return c.variant + " " + c.unit + " x=" + c.x_shape.to_string() + " multiplier=" + std::to_string(c.multiplier) + " " +
         to_text(c.params) + " gaps=" + std::to_string(c.gaps) + " constant=" + std::to_string(c.constant_weights) +
         " threads=" + std::to_string(c.threads);
}

std::string check(Random& random, const Case& c) {
  const Dims y_shape = output_shape(c);
  const int spatial = c.x_shape.size() - 2;
  const int64_t k = y_shape[1];
  Dims w_shape{k, 1};
  for (int i = 0; i < spatial; ++i) w_shape.push_back(c.params.window.filter[static_cast<size_t>(3 - spatial + i)]);

  std::vector<Operand> inputs;
  inputs.push_back(test::random_operand(random, test::channels_last_desc(random, c.x_shape, c.gaps)));
  // Constant weights are packed from row-major memory; others may lie in any order.
  TensorDesc w_desc = dense_desc(DType::f32, w_shape);
  if (!c.constant_weights && pick(random, 0, 1)) w_desc = test::channels_last_desc(random, w_shape, true);
  inputs.push_back(test::random_operand(random, w_desc));
  const Epilogue& e = c.params.epilogue;
  test::add_epilogue_operands(random, e, y_shape, c.gaps, c.odd_vectors ? 3 : 1, inputs);
  Operand y = test::poisoned_output(random, y_shape, c.gaps);

  const Stage stage = test::stage_of(c.params, inputs, y);
  const test::Expected expected = test::expected_of(depthwise_info(), stage, inputs);

  DepthwiseSchedule schedule;
  schedule.variant = c.variant, schedule.unit = c.unit;
  schedule.rows = c.variant == "tile2x7" ? 2 : 1;
  schedule.columns = c.variant == "window" ? 8 : 7;
  schedule.grain = 64;
  auto made = make_depthwise(stage, schedule, Device{}, c.constant_weights ? 2u : 0u);
  if (!made.ok()) return "not made: " + made.error().message;

  test::run_kernel(**made, inputs, y, c.threads);

  // Every rounding of a sum of t products of at most 1 is at most eps * t / 2; scale and alpha are at most 2, activations
  // double it.
  const auto taps = static_cast<double>(c.params.window.taps());
  const double sum = std::max(1.0, taps) * std::max(1.0, std::abs(e.alpha));
  const double tolerance = 1.2e-7 * (taps + 12) * sum * std::max({1.0, std::abs(e.a), std::abs(e.b)});
  return test::compare(y, expected, tolerance);
}

Case random_case(Random& random) {
  Case c;
  const int spatial = static_cast<int>(pick(random, 1, 3));
  const int64_t channels[] = {1, 3, 8, 15, 16, 17, 24, 32, 40, 67, 130};
  c.x_shape = Dims{pick(random, 1, 2), channels[pick(random, 0, 10)]};
  Window& w = c.params.window;
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(3 - spatial + i);
    c.x_shape.push_back(pick(random, 1, spatial == 3 ? 7 : 20));
    w.filter[at] = pick(random, 1, 5), w.stride[at] = pick(random, 1, 3), w.dilation[at] = pick(random, 1, 4);
    w.pad_begin[at] = pick(random, -1, 4), w.pad_end[at] = pick(random, -1, 4);
  }
  c.multiplier = pick(random, 0, 4) ? 1 : pick(random, 2, 3);
  return c;
}

void random_epilogue(Random& random, Epilogue& e) {
  e.alpha = pick(random, 0, 2) ? 1 : 1.5;
  e.scale = pick(random, 0, 2) == 0, e.bias = pick(random, 0, 1);
  e.residuals_before = static_cast<int>(pick(random, 0, 3) ? 0 : pick(random, 1, 2));
  e.residuals_after = static_cast<int>(pick(random, 0, 3) || e.residuals_before == 2 ? 0 : 1);
  e.activation = static_cast<Activation>(pick(random, 0, 14));
  const bool clip = e.activation == Activation::clip, selu = e.activation == Activation::selu;
  e.a = clip ? -0.25 : selu ? 1.67 : 0.2, e.b = clip ? 0.5 : selu ? 1.05 : 0.5;
}

// The tiles hold arrays of vectors, which have no size on SVE.
bool has_tiles(const std::string& unit) { return unit != "sve"; }

void run_cases(unsigned seed, int count, const std::vector<std::string>& variants) {
  for (const std::string& unit : test::units_of_this_machine()) {
    if (variants[0] != "window" && !has_tiles(unit)) continue;
    for (int i = 0; i < cases_on(unit, count); ++i) {
      const unsigned this_seed = seed + static_cast<unsigned>(i);
      Random random(this_seed);
      Case c = random_case(random);
      c.unit = unit, c.variant = variants[static_cast<size_t>(i) % variants.size()];
      c.threads = static_cast<int>(pick(random, 1, 2));
      c.gaps = pick(random, 0, 1), c.constant_weights = pick(random, 0, 1), c.odd_vectors = pick(random, 0, 3) == 0;
      random_epilogue(random, c.params.epilogue);
      if (c.variant != "window") {
        const int64_t filter = 3 + 2 * pick(random, 0, 2), stride = pick(random, 1, 2);
        Window& w = c.params.window;
        c.x_shape = Dims{c.x_shape[0], c.x_shape[1], pick(random, 1, 20), pick(random, 1, 33)};
        w.filter = {1, filter, filter}, w.stride = {1, stride, stride}, w.dilation = {1, 1, 1};
        w.pad_begin = {0, pick(random, -1, 3), pick(random, -1, 3)}, w.pad_end = {0, pick(random, -1, 3), pick(random, -1, 3)};
        c.multiplier = 1;
      }
      ASSERT_EQ(check(random, c), "") << "seed " << this_seed << ": " << describe(c);
    }
  }
}

TEST(CpuDepthwise, WindowMatchesReferenceOnRandomShapes) { run_cases(1000, 400, {"window"}); }
TEST(CpuDepthwise, TilesMatchReferenceOnRandomShapes) { run_cases(5000, 600, {"tile1x7", "tile2x7"}); }

TEST(CpuDepthwise, LayersOfNetworks) {
  struct Layer {
    int64_t c, size, filter, stride, dilation;
  };
  // MobileNetV2, EfficientNet, DeepLab with rates up to most of the map.
  const Layer layers[] = {{32, 28, 3, 1, 1}, {96, 28, 3, 2, 1}, {144, 14, 3, 1, 1}, {960, 7, 3, 1, 1},  {40, 14, 5, 1, 1},
                          {72, 28, 5, 2, 1}, {64, 33, 3, 1, 6}, {64, 33, 3, 1, 18}, {24, 33, 3, 1, 24}, {64, 17, 7, 1, 1}};
  Random random(7);
  for (const std::string& unit : test::units_of_this_machine())
    for (const Layer& l : layers)
      for (const char* variant : {"window", "tile1x7", "tile2x7"}) {
        Case c;
        c.x_shape = Dims{1, l.c, l.size, l.size};
        const int64_t pad = (l.filter - 1) / 2 * l.dilation;
        c.params.window = {
            {1, l.filter, l.filter}, {1, l.stride, l.stride}, {1, l.dilation, l.dilation}, {0, pad, pad}, {0, pad, pad}};
        c.params.epilogue.bias = true;
        c.params.epilogue.activation = Activation::clip, c.params.epilogue.b = 6;
        c.variant = variant, c.unit = unit, c.threads = 2;
        if (c.variant != "window" && (l.dilation > 1 || l.filter > 7 || !has_tiles(unit))) continue;
        ASSERT_EQ(check(random, c), "") << describe(c);
      }
}

TEST(CpuDepthwise, UnitsWithoutTilesAreSve) {
  for (const std::string& unit : test::units_of_this_machine()) {
    EXPECT_NE(depthwise_window_rows(unit), nullptr) << unit;
    for (int64_t filter : {3, 5, 7})
      for (int64_t stride : {1, 2}) EXPECT_EQ(depthwise_tile_rows(unit, filter, stride) != nullptr, has_tiles(unit)) << unit;
  }
}

TEST(CpuDepthwise, RefusalsNameTheReason) {
  const auto units = test::units_of_this_machine();
  if (units.empty()) GTEST_SKIP() << "no vector unit with kernels on this machine";
  const Dims shape{1, 8, 6, 6}, filter{8, 1, 3, 3};
  DepthwiseParams params;
  params.window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}};
  const TensorDesc nhwc{DType::f32, shape, channels_last(shape)}, nchw = dense_desc(DType::f32, shape);
  DepthwiseSchedule schedule;
  schedule.variant = "tile1x7", schedule.unit = units[0];
  const auto reason = [&](const Stage& stage) {
    auto made = make_depthwise(stage, schedule, Device{}, 0);
    return made.ok() ? Reason::none : made.error().reason;
  };
  const TensorDesc w = dense_desc(DType::f32, filter);
  EXPECT_EQ(reason({params, {nhwc, w}, {nhwc}}), Reason::none);
  EXPECT_EQ(reason({params, {nchw, w}, {nhwc}}), Reason::layout_not_served);
  EXPECT_EQ(reason({params, {nhwc, w}, {nchw}}), Reason::layout_not_served);
  params.window.dilation = {1, 2, 2};
  EXPECT_EQ(reason({params, {nhwc, w}, {nhwc}}), Reason::filter_not_served);
  schedule.unit = "abacus";
  params.window.dilation = {1, 1, 1};
  EXPECT_EQ(reason({params, {nhwc, w}, {nhwc}}), Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
