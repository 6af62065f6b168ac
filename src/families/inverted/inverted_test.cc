// The reference of inverted blocks by hand-computed numbers, and what the family tells the planner.
#include <gtest/gtest.h>

#include "families/avx512_machine_testing.h"
#include "families/family.h"
#include "families/inverted/inverted.h"
#include "families/stage.h"
#include "families/values/activation.h"

namespace sparkle {
namespace {

using testing::avx512_machine;

TensorDesc maps(int64_t c, int64_t h, int64_t w) { return {DType::f32, {1, c, h, w}, channels_last({1, c, h, w})}; }

Stage block(int64_t c, int64_t size, int64_t wide, int64_t k, const Window& window) {
  InvertedParams p;
  p.window = window;
  return {p,
          {maps(c, size, size), dense_desc(DType::f32, {wide, c, 1, 1}), dense_desc(DType::f32, {wide, 1, 3, 3}),
           dense_desc(DType::f32, {k, wide, 1, 1})},
          {maps(k, size, size)}};
}

Window three_by_three() { return {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}}; }

TEST(Inverted, ReferenceByHand) {
  // One channel of 1x2 pixels, two wide channels; outside of the image the wide plane is zero, not the bias.
  const HostTensor x = HostTensor::of<float>(DType::f32, {1, 1, 1, 2}, {1, 2});
  const HostTensor wide = HostTensor::of<float>(DType::f32, {2, 1, 1, 1}, {1, -1}),
                   wide_bias = HostTensor::of<float>(DType::f32, {2}, {10, 4});
  const HostTensor deep =
      HostTensor::of<float>(DType::f32, {2, 1, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0});
  const HostTensor project = HostTensor::of<float>(DType::f32, {1, 2, 1, 1}, {1, 100});
  const HostTensor residual = HostTensor::of<float>(DType::f32, {1, 1, 1, 2}, {0.5, 0.25});
  const HostTensor y = HostTensor::zeros(DType::f32, {1, 1, 1, 2});
  InvertedParams p;
  p.window = three_by_three();
  p.wide.bias = true, p.wide.activation = Activation::clip, p.wide.a = 0, p.wide.b = 11;
  p.project.residuals_after = 1;
  const TensorView inputs[] = {x.view(), wide.view(), wide_bias.view(), deep.view(), project.view(), residual.view()};
  const TensorView output = y.view();
  inverted_info().reference(p, std::span<const TensorView>(inputs, 6), {&output, 1});
  // Wide: 11, 12 -> 11 and 3, 2. Depthwise: 22, 22 and 2 * 2, 0.
  EXPECT_EQ(y.data<float>()[0], 22 + 400 + 0.5f);
  EXPECT_EQ(y.data<float>()[1], 22 + 0.25f);
}

TEST(Inverted, OperandsInTheirOrder) {
  InvertedParams p;
  p.wide.bias = p.project.bias = true;
  p.project.residuals_before = 1;
  InvertedOperands at = inverted_operands(p);
  EXPECT_EQ(at.wide_weights, 1);
  EXPECT_EQ(at.wide_bias, 2);
  EXPECT_EQ(at.deep_weights, 3);
  EXPECT_EQ(at.deep_bias, -1);
  EXPECT_EQ(at.weights, 4);
  EXPECT_EQ(at.bias, 5);
  EXPECT_EQ(at.residual, 6);
  EXPECT_EQ(at.count, 7);
  p = {}, p.expand = false, p.wide.bias = true;
  at = inverted_operands(p);
  EXPECT_EQ(at.wide_weights, -1);
  EXPECT_EQ(at.wide_bias, -1);
  EXPECT_EQ(at.deep_weights, 1);
  EXPECT_EQ(at.weights, 2);
  EXPECT_EQ(at.count, 3);
}

TEST(Inverted, EveryVariantIsOfferedOrRefusedWithAReason) {
  Window dilated = three_by_three(), uneven = three_by_three(), inside = three_by_three();
  dilated.dilation = {1, 2, 2}, uneven.stride = {1, 1, 2}, inside.pad_begin = {0, -1, 0};
  const auto reason_of = [](const Stage& stage, std::string_view name) {
    Reason why = Reason::none;
    for (const Variant& variant : inverted_info().variants) {
      if (variant.name != name) continue;
      const bool refused = inverted_info().schedules(stage, variant, avx512_machine(1), why).empty();
      EXPECT_EQ(refused, why != Reason::none);
    }
    return why;
  };
  const Stage good = block(8, 14, 48, 8, three_by_three());
  EXPECT_EQ(reason_of(good, "plain"), Reason::none);
  EXPECT_EQ(reason_of(good, "rows6x4"), Reason::none);
  EXPECT_EQ(reason_of(good, "rows6x2"), Reason::registers_idle);
  for (const Window& window : {dilated, uneven, inside})
    EXPECT_EQ(reason_of(block(8, 14, 48, 8, window), "rows6x4"), Reason::filter_not_served);
  Stage rows = good;
  rows.inputs[0].layout = row_major(rows.inputs[0].shape);
  EXPECT_EQ(reason_of(rows, "rows6x4"), Reason::layout_not_served);
  EXPECT_EQ(reason_of(rows, "plain"), Reason::none);
}

TEST(Inverted, FootprintCountsSharedRowsOncePerTask) {
  const Stage stage = block(16, 28, 96, 16, three_by_three());
  InvertedSchedule schedule;
  schedule.unit = "avx512";
  const Footprint one = inverted_info().footprint(stage, schedule, avx512_machine(2));
  EXPECT_EQ(one.nominal_flops, 2.0 * 96 * 28 * 28 * (16 + 9 + 16));
  EXPECT_EQ(one.executed_flops, one.nominal_flops);
  EXPECT_EQ(one.parallel_items, 1);
  schedule.tasks = 4;
  const Footprint four = inverted_info().footprint(stage, schedule, avx512_machine(2));
  EXPECT_EQ(four.nominal_flops, one.nominal_flops);
  EXPECT_EQ(four.executed_flops - one.executed_flops, 3 * 2.0 * 96 * (2 * 28) * 16);  // two rows at each of three borders
  EXPECT_EQ(four.parallel_items, 4);
  schedule.tasks = 3;  // of 10, 9 and 9 rows
  EXPECT_EQ(inverted_info().footprint(stage, schedule, avx512_machine(2)).parallel_items, 2.8);
}

}  // namespace
}  // namespace sparkle
