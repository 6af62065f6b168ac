// Tile registers of a CPU are chosen where they cost less than vectors, for what they compute exactly: 8-bit integers, and
// operands that are bf16 in the model.
#include <gtest/gtest.h>

#include "families/gemm/gemm.h"
#include "plan/choose/choose.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

AnchorCall integer_call(std::string_view text) {
  Problem p = *parse_conv(text);
  p.dtype = "u8", p.epilogue.scale = true;
  const ProblemOperands operands = operands_of(p);
  AnchorCall call{p, operands.inputs, operands.output};
  call.inputs[0].dtype = call.output.dtype = DType::u8, call.inputs[1].dtype = DType::i8, call.inputs[2].dtype = DType::f32;
  for (const DType type : {DType::u8, DType::i8, DType::u8}) call.inputs.push_back(dense_desc(type, {1}));
  return call;
}

AnchorCall call_in(std::string_view type, std::string_view text) {
  Problem p = *parse_conv(text);
  const ProblemOperands operands = operands_of(p);
  p.dtype = type;
  return {p, operands.inputs, operands.output};
}

std::string variant_on(const std::string& device, const AnchorCall& call, const PlanOptions& options = {}) {
  const auto choice = choose(call, testing::device_named(device), options);
  EXPECT_TRUE(choice.ok());
  return choice.ok() && choice->schedules.size() == 1 ? variant_of(choice->schedules[0]) : "";
}

constexpr const char* kLayers[] = {"ic64ih56oc64oh56kh3ph1", "ic256ih14oc1024oh14kh1", "ic512ih7oc512oh7kh3ph1",
                                   "ic128ih28oc512oh28kh1"};

TEST(Tiles, MultiplyBytesWhereThatCostsLess) {
  for (const char* layer : kLayers) {
    EXPECT_EQ(variant_on("xeon-emr", integer_call(layer)), kMatrixI8) << layer;
    EXPECT_EQ(variant_on("epyc-zen4", integer_call(layer)), "dot6x4") << layer;
  }
  // A pixel of a few channels would leave most of a tile idle.
  EXPECT_EQ(variant_on("xeon-emr", integer_call("ic8ih1oc8oh1kh1")), "dot6x4");
}

TEST(Tiles, MultiplyBf16OfModelsInBf16Alone) {
  for (const char* layer : kLayers) {
    EXPECT_EQ(variant_on("xeon-emr", call_in("bf16", layer)), kMatrixBf16) << layer;
    EXPECT_NE(variant_on("epyc-zen4", call_in("bf16", layer)), kMatrixBf16) << layer;
    PlanOptions rough;
    rough.accuracy = 0.1;
    for (const char* type : {"f32", "f16"})
      EXPECT_NE(variant_on("xeon-emr", call_in(type, layer), rough), kMatrixBf16) << layer;
    PlanOptions exact;
    exact.exact_nonfinite = true;
    EXPECT_NE(variant_on("xeon-emr", call_in("bf16", layer), exact), kMatrixBf16) << layer;
  }
}

// Weights that do not stay in the L2 are read once for blocks of rows, and these stay in a part of it.
TEST(Tiles, RowsAreTakenInBlocksWhereWeightsAreLarge) {
  const Device device = testing::device_named("xeon-emr");
  const auto planned = [&](const char* layer) {
    const auto choice = choose(integer_call(layer), device, {});
    EXPECT_TRUE(choice.ok());
    return get<GemmSchedule>(choice->schedules[0]);
  };
  EXPECT_EQ(planned("ic64ih56oc64oh56kh3ph1").order, GemmOrder::rows);
  const GemmSchedule large = planned("ic512ih28oc512oh28kh3ph1");
  EXPECT_EQ(large.order, GemmOrder::columns);
  EXPECT_EQ(large.mc % 32, 0);
  EXPECT_GT(large.mc, 32);
  EXPECT_LE(large.mc * 512 * 9, device.level("L2")->bytes / 2);
}

}  // namespace
}  // namespace sparkle
