// Stages on 8-bit integers on GPUs: what the cost model prefers among the variants, by what units a device has.
#include <gtest/gtest.h>

#include <limits>

#include "families/depthwise/depthwise.h"
#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "plan/choose/cost.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

// Scale, bias and zero points behind x and w.
Stage with_operands(const StageParams& params, const Dims& x, const Dims& w, const Dims& y) {
  const Dims list{y[1]}, one{1};
  return {params,
          {{DType::u8, x, channels_last(x)},
           {DType::i8, w, row_major(w)},
           {DType::f32, list, row_major(list)},
           {DType::i32, list, row_major(list)},
           {DType::u8, one, row_major(one)},
           {DType::i8, one, row_major(one)},
           {DType::u8, one, row_major(one)}},
          {{DType::u8, y, channels_last(y)}}};
}
Epilogue requantising() {
  Epilogue e;
  e.scale = e.bias = true;
  return e;
}
Stage pointwise_layer() {
  GemmParams p;
  p.epilogue = requantising();
  return with_operands(p, {1, 144, 56, 56}, {144, 144, 1, 1}, {1, 144, 56, 56});
}
Stage depthwise_layer() {
  DepthwiseParams p;
  p.window.filter = {1, 3, 3}, p.window.pad_begin = {0, 1, 1};
  p.epilogue = requantising();
  return with_operands(p, {1, 144, 56, 56}, {144, 1, 3, 3}, {1, 144, 56, 56});
}

std::string cheapest(const Stage& stage, const Device& device) {
  double least = std::numeric_limits<double>::infinity();
  std::string name;
  const FamilyInfo& family = info(stage.family());
  for (const Variant& variant : family.variants) {
    Reason why = Reason::none;
    if (!variant.runs_on(device)) continue;
    for (const Schedule& s : family.schedules(stage, variant, device, why)) {
      const double seconds = cost_of(family.footprint(stage, s, device), s, device).seconds;
      if (seconds < least) least = seconds, name = variant.name;
    }
  }
  return name;
}

TEST(IntegerTiles, DotProductsWhereTheDeviceHasThem) {
  EXPECT_EQ(cheapest(pointwise_layer(), testing::device_named("radeon-rx-7900-xtx")), "dot_tile");
  EXPECT_EQ(cheapest(pointwise_layer(), testing::device_named("h200-vulkan")), "dot_tile");
  EXPECT_EQ(cheapest(pointwise_layer(), testing::device_named("arc-a770")), "dot_tile");
  EXPECT_EQ(cheapest(pointwise_layer(), testing::device_named("radeon-rx-vega-64")), "bytes_tile");
  EXPECT_EQ(cheapest(depthwise_layer(), testing::device_named("radeon-rx-7900-xtx")), "bytes_row");
}

TEST(IntegerTiles, FloatsAndIntegersHaveVariantsOfTheirOwn) {
  const Device device = testing::device_named("radeon-rx-7900-xtx");
  for (Stage stage : {pointwise_layer(), depthwise_layer()})
    for (const bool integers : {true, false}) {
      if (!integers)
        for (auto* list : {&stage.inputs, &stage.outputs})
          for (TensorDesc& d : *list) d.dtype = DType::f32;
      for (const Variant& variant : info(stage.family()).variants) {
        Reason why = Reason::none;
        if (!variant.runs_on(device)) continue;
        const bool on_bytes = variant.name.starts_with("bytes") || variant.name.starts_with("dot");
        const bool supported = !info(stage.family()).schedules(stage, variant, device, why).empty();
        if (on_bytes != integers) {
          EXPECT_FALSE(supported) << variant.name;
        }
        EXPECT_EQ(supported, why == Reason::none) << variant.name;
      }
    }
}

}  // namespace
}  // namespace sparkle
