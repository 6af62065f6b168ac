// The depthwise reference by hand-computed numbers, and what the family tells the planner.
#include <gtest/gtest.h>

#include "families/values/activation.h"
#include "families/depthwise/depthwise.h"
#include "families/family.h"
#include "families/stage.h"

namespace sparkle {
namespace {

Device avx512_machine() {
  Device device;
  device.memory = {{"L1", 32768, 0, 0, 1, false}, {"L2", 1 << 20, 0, 0, 1, false}, {"DRAM", 0, 0, 0, 2, false}};
  MathUnit unit;
  unit.name = "avx512", unit.n = 16, unit.registers = 32, unit.flops_per_second = 1e11;
  device.units = {unit};
  return device;
}

Stage stage_of(int64_t c, int64_t size, const DepthwiseParams& p, bool channels_innermost = true) {
  const Dims shape{1, c, size, size};
  TensorDesc x = dense_desc(DType::f32, shape);
  if (channels_innermost) x.layout = channels_last(shape);
  return {p, {x, dense_desc(DType::f32, {c, 1, p.window.filter[1], p.window.filter[2]})}, {x}};
}

DepthwiseParams three_by_three() {
  DepthwiseParams p;
  p.window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}};
  return p;
}

TEST(Depthwise, ReferenceByHand) {
  // One row of three pixels, two channels with one filter of three taps and two filters of their own each.
  const HostTensor x = HostTensor::of<float>(DType::f32, {1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const HostTensor w = HostTensor::of<float>(DType::f32, {4, 1, 3}, {1, 1, 1, 0, 1, 0, 1, 0, -1, 0, 0, 2});
  const HostTensor bias = HostTensor::of<float>(DType::f32, {4}, {0, 10, 0, -9});
  const HostTensor y = HostTensor::zeros(DType::f32, {1, 4, 3});
  DepthwiseParams p;
  p.window = {{1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}};
  p.epilogue.bias = true, p.epilogue.activation = Activation::relu;
  const TensorView inputs[] = {x.view(), w.view(), bias.view()};
  const TensorView output = y.view();
  depthwise_info().reference(p, std::span<const TensorView>(inputs, 3), {&output, 1});
  const float expected[] = {3, 6, 5, 11, 12, 13, 0, 0, 5, 1, 3, 0};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(y.data<float>()[i], expected[i]) << i;
}

TEST(Depthwise, EveryVariantIsOfferedOrRefusedWithAReason) {
  const Device device = avx512_machine();
  DepthwiseParams dilated = three_by_three();
  dilated.window.dilation = {1, 2, 2};
  struct Expectation {
    Stage stage;
    std::string_view variant;
    Reason reason;
  };
  const Expectation expectations[] = {
      {stage_of(32, 14, three_by_three()), "plain", Reason::none},
      {stage_of(32, 14, three_by_three()), "tile2x7", Reason::none},
      {stage_of(32, 14, three_by_three()), "window", Reason::none},
      {stage_of(32, 14, dilated), "tile1x7", Reason::filter_not_served},
      {stage_of(32, 14, dilated), "window", Reason::none},
      {stage_of(32, 14, three_by_three(), false), "window", Reason::layout_not_served},
      {stage_of(32, 14, three_by_three(), false), "plain", Reason::none},
  };
  for (const Expectation& e : expectations)
    for (const Variant& variant : depthwise_info().variants) {
      if (variant.name != e.variant) continue;
      Reason why = Reason::none;
      const auto schedules = depthwise_info().schedules(e.stage, variant, device, why);
      EXPECT_EQ(why, e.reason) << e.variant;
      EXPECT_EQ(schedules.empty(), e.reason != Reason::none) << e.variant;
    }
}

TEST(Depthwise, FootprintCountsTapsInside) {
  const Device device = avx512_machine();
  const Stage stage = stage_of(16, 7, three_by_three());
  DepthwiseSchedule schedule;
  schedule.variant = "tile2x7", schedule.unit = "avx512", schedule.rows = 2, schedule.columns = 7, schedule.grain = 4096;
  const Footprint f = depthwise_info().footprint(stage, schedule, device);
  EXPECT_EQ(f.nominal_flops, 2.0 * 16 * 49 * 9);
  EXPECT_EQ(f.executed_flops, 2.0 * 16 * 19 * 19);  // 5 * 3 + 2 * 2 taps inside along each axis
  EXPECT_EQ(f.bytes.size(), device.memory.size());
}

}  // namespace
}  // namespace sparkle
