// How plans treat element types: 16-bit floats become f32 once and stay so, programs never mix arithmetics, what no family
// computes is refused by name.
#include <algorithm>

#include "graph/test_graphs.h"
#include "plan/choose/choose.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

Result<Plan> planned(GraphBuilder& b, TensorId output) {
  b.done(output);
  SPARKLE_TRY(graph, testing::ready(b.graph));
  return make_plan(graph, testing::device_named("epyc-zen4"));
}

TensorId typed(GraphBuilder& b, const HostTensor& value) {
  return b.graph.add_constant("c" + std::to_string(b.graph.tensors.size()), value);
}

TEST(ElementTypes, Fp16AreConvertedOnceEachWay) {
  GraphBuilder b;
  const TensorId x = b.input({1, 8, 6, 6}, DType::f16);
  TensorId v = x;
  for (int i = 0; i < 3; ++i) {
    const TensorId w = typed(b, HostTensor::zeros(DType::f16, {8, 8, 3, 3}));
    v = b.pointwise(PointwiseOp::relu, {b.op("Conv", testing::conv_op(1), {v, w})});
  }
  const auto plan = planned(b, v);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  int to_f32 = 0, to_f16 = 0, convolutions = 0;
  for (const PlanStep& step : plan->steps) {
    const DType in = step.stage.inputs[0].dtype, out = step.stage.outputs[0].dtype;
    to_f32 += in == DType::f16 && out == DType::f32;
    to_f16 += in == DType::f32 && out == DType::f16;
    convolutions += !step.problem.empty() && in == DType::f32 && out == DType::f32;
  }
  EXPECT_EQ(to_f32, 1);
  EXPECT_EQ(to_f16, 1);
  EXPECT_EQ(convolutions, 3);
  EXPECT_EQ(plan->tensors[static_cast<size_t>(plan->outputs[0])].desc.dtype, DType::f16);
  for (const PlanConstant& c : plan->constants) EXPECT_EQ(c.value.dtype, DType::f32) << c.name;
}

// On GPUs that store f16, with and without families whose kernels take f32 alone in between.
Plan planned_on_gpu(GraphBuilder& b, TensorId output, const std::string& device = "radeon-rx-7900-xtx") {
  b.done(output);
  auto graph = testing::ready(b.graph);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  if (!graph.ok()) return {};
  auto plan = make_plan(*graph, testing::device_named(device));
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? std::move(*plan) : Plan{};
}
int conversions(const Plan& plan, DType from, DType to) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
    return step.stage.inputs[0].dtype == from && step.stage.outputs[0].dtype == to;
  }));
}

TEST(ElementTypes, GpusThatStoreFp16ExchangeThem) {
  for (const char* device : {"radeon-rx-7900-xtx", "radeon-rx-vega-64", "h200-vulkan", "lavapipe"}) {
    GraphBuilder b;
    const auto weights = [&](const Dims& shape) { return typed(b, HostTensor::zeros(DType::f16, shape)); };
    const TensorId x = b.input({1, 8, 6, 6}, DType::f16);
    TensorId v = b.pointwise(PointwiseOp::relu, {b.op("Conv", testing::conv_op(1), {x, weights({8, 8, 3, 3}), weights({8})})});
    v = b.op("Conv", testing::conv_op(1, 8), {v, weights({8, 1, 3, 3})});
    v = b.op("MaxPool", PoolOp{PoolKind::max, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, {v});
    v = b.op("Concat", ConcatOp{1}, {v, b.op("Softmax", SoftmaxOp{1}, {v})});
    v = b.op("ReduceMean", ReduceOp{ReduceKind::mean, {2, 3}}, {v});
    const Plan plan = planned_on_gpu(b, v, device);
    for (const PlanStep& step : plan.steps) {
      EXPECT_TRUE(has_kernel(step)) << step.name;
      for (const auto* list : {&step.stage.inputs, &step.stage.outputs})
        for (const TensorDesc& desc : *list) EXPECT_EQ(desc.dtype, DType::f16) << step.name;
    }
    for (const PlanConstant& c : plan.constants) EXPECT_EQ(c.value.dtype, DType::f16) << c.name;
  }
}

TEST(ElementTypes, MixedTensorsOnGpusAreConvertedWhereTheyMust) {
  GraphBuilder b;
  const auto conv = [&](TensorId x) {
    return b.op("Conv", testing::conv_op(1), {x, typed(b, HostTensor::zeros(DType::f16, {8, 8, 3, 3}))});
  };
  const TensorId x = b.input({1, 8, 6, 6}, DType::f16), other = b.input({1, 8, 6, 6});
  // A residual that comes from f32, and an operator without kernels for f16: its squares may be beyond f16.
  const TensorId sum = b.pointwise(PointwiseOp::add, {conv(x), b.op("Cast", CastOp{DType::f16}, {other})});
  const TensorId normal = b.op("LRN", LocalResponseOp{3, 1e-4, 0.75, 1}, {sum});
  const Plan plan = planned_on_gpu(b, b.op("Cast", CastOp{DType::f32}, {conv(normal)}));
  int sums = 0;
  for (const PlanStep& step : plan.steps) {
    if (step.problem.empty()) continue;
    ++sums;
    for (const TensorDesc& desc : step.stage.inputs) EXPECT_EQ(desc.dtype, DType::f16) << step.name;
    EXPECT_EQ(step.stage.outputs[0].dtype, DType::f16) << step.name;
  }
  EXPECT_EQ(sums, 2);
  EXPECT_EQ(conversions(plan, DType::f32, DType::f16), 2);  // the residual's cast, and behind the normalisation
  EXPECT_EQ(conversions(plan, DType::f16, DType::f32), 2);  // before it, and the last cast
  EXPECT_EQ(plan.tensors[static_cast<size_t>(plan.outputs[0])].desc.dtype, DType::f32);
}

TEST(ElementTypes, Bfloat16IsConvertedOnGpusToo) {
  GraphBuilder b;
  const TensorId x = b.input({1, 8, 6, 6}, DType::bf16), w = typed(b, HostTensor::zeros(DType::bf16, {8, 8, 3, 3}));
  const Plan plan = planned_on_gpu(b, b.op("Conv", testing::conv_op(1), {x, w}));
  for (const PlanStep& step : plan.steps)
    if (!step.problem.empty()) {
      EXPECT_EQ(step.stage.inputs[0].dtype, DType::f32);
    }
}

TEST(ElementTypes, MovesAndElementWiseStepsReadFp16Directly) {
  GraphBuilder b;
  const TensorId x = b.input({2, 5, 7}, DType::bf16), y = b.input({2, 7, 5}, DType::bf16);
  const TensorId t = b.op("Transpose", TransposeOp{{0, 2, 1}}, {x});
  const auto plan = planned(b, b.pointwise(PointwiseOp::add, {t, y}));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  for (const PlanStep& step : plan->steps) {
    for (const TensorDesc& desc : step.stage.inputs) EXPECT_EQ(desc.dtype, DType::bf16) << step.name;
    for (const TensorDesc& desc : step.stage.outputs) EXPECT_EQ(desc.dtype, DType::bf16) << step.name;
  }
}

TEST(ElementTypes, AnExplicitCastRounds) {
  GraphBuilder b;
  const TensorId x = b.input({3, 5});
  const TensorId narrow = b.op("Cast", CastOp{DType::f16}, {x});
  const auto plan = planned(b, b.op("Cast", CastOp{DType::f32}, {narrow}));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(plan->steps[0].stage.outputs[0].dtype, DType::f16);
}

TEST(ElementTypes, ProgramsOfDifferentArithmeticAreNotMerged) {
  GraphBuilder b;
  const TensorId i = b.input({3, 5}, DType::i64), j = b.input({3, 5}, DType::i64), f = b.input({3, 5});
  const TensorId less = b.pointwise(PointwiseOp::less, {b.pointwise(PointwiseOp::add, {i, j}), j});
  const auto plan = planned(b, b.pointwise(PointwiseOp::select, {less, f, b.pointwise(PointwiseOp::neg, {f})}));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->steps.size(), 2u);
  EXPECT_EQ(variant_of(plan->steps[0].schedule), "typed");
  EXPECT_EQ(variant_of(plan->steps[1].schedule), "strips");
}

TEST(ElementTypes, WhatNoFamilyComputesIsRefusedByName) {
  GraphBuilder b;
  const TensorId x = b.input({3, 5}, DType::i32);
  const auto plan = planned(b, b.pointwise(PointwiseOp::exp, {x}));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().reason, Reason::type_not_served);
  EXPECT_EQ(plan.error().message,
            "Node 'n0' (exp): tensor 'x0' has type i32; this operator supports f32, f16, bf16, f64 there.");
}

// Tensors of the types that are storage alone: operators either move their elements or say that they do not support them,
// whether they are inputs or constants.
TEST(ElementTypes, NarrowTypesAreMovedOrRefusedByName) {
  struct Case {
    std::string type;
    OpParams params;
    int inputs = 1;
    bool moves = false;
    std::vector<int64_t> list;  // a constant behind the inputs
  };
  std::vector<Case> cases = {
      {"Transpose", TransposeOp{{0, 2, 1, 3}}, 1, true, {}},
      {"Reshape", ReshapeOp{ReshapeOp::Form::reshape, {4, 72}, false, true}, 1, true, {}},
      {"Concat", ConcatOp{1}, 2, true, {}},
      {"Gather", GatherOp{0}, 1, true, {1, 0, 1}},
      {"Tile", TileOp{}, 1, true, {1, 2, 1, 2}},
      {"Pad", PadOp{}, 1, true, {0, 0, 1, 0, 0, 0, 0, 2}},
      {"DepthToSpace", DepthToSpaceOp{2}, 1, true, {}},
      {"Expand", ExpandOp{}, 1, true, {2, 2, 4, 6, 6}},
      {"Trilu", TriluOp{}, 1, true, {}},
      {"Cast", CastOp{DType::f16}, 1, true, {}},
      {"Conv", testing::conv_op(0), 2, false, {}},
      {"MatMul", MatMulOp{}, 2, false, {}},
      {"MaxPool", PoolOp{PoolKind::max, {1, 1}, {}, {}, {}, {}}, 1, false, {}},
      {"ReduceSum", ReduceOp{ReduceKind::sum, {1}}, 1, false, {}},
      {"ReduceMax", ReduceOp{ReduceKind::max, {1}}, 1, false, {}},
      {"Softmax", SoftmaxOp{}, 1, false, {}},
      {"TopK", TopKOp{1}, 1, false, {2}},
      {"ArgMax", ArgOp{1}, 1, false, {}},
      {"CumSum", CumSumOp{1}, 1, false, {}},
      {"Equal", PointwiseNode{PointwiseOp::equal}, 2, false, {}},
  };
  for (PointwiseOp op : {PointwiseOp::add, PointwiseOp::exp, PointwiseOp::is_nan, PointwiseOp::relu, PointwiseOp::max})
    cases.push_back({std::string(name_of(op)), PointwiseNode{op}, arity_of(op), false, {}});
  for (int t = static_cast<int>(DType::f8e4m3fn); t < kDTypes; ++t)
    for (const Case& c : cases)
      for (const bool constant : {false, true}) {
        const DType type = static_cast<DType>(t);
        GraphBuilder b;
        b.input({1});  // a model has an input
        std::vector<TensorId> inputs;
        for (int i = 0; i < c.inputs; ++i)
          inputs.push_back(constant ? typed(b, HostTensor::zeros(type, {2, 4, 6, 6})) : b.input({2, 4, 6, 6}, type));
        if (!c.list.empty()) inputs.push_back(b.ints(c.list));
        const TensorId y = b.op(c.type, c.params, inputs);
        const auto plan = planned(b, y);
        const std::string what = c.type + " of " + std::string(name_of(type)) + (constant ? ", constant" : "");
        if (c.moves) {
          EXPECT_TRUE(plan.ok()) << what << ": " << plan.error().message;
          continue;
        }
        ASSERT_FALSE(plan.ok()) << what;
        EXPECT_EQ(plan.error().reason, Reason::type_not_served) << what << ": " << plan.error().message;
        EXPECT_NE(plan.error().message.find("'n0'"), std::string::npos) << plan.error().message;
        EXPECT_NE(plan.error().message.find(name_of(type)), std::string::npos) << plan.error().message;
      }
}

TEST(ElementTypes, BoundsOfIntegersNeedNotFitADouble) {
  GraphBuilder b;
  const int64_t high = (int64_t{1} << 62) + 1;
  const TensorId x = b.input({4}, DType::i64);
  const TensorId clipped = b.op("Clip", PointwiseNode{PointwiseOp::clip, -INFINITY, INFINITY},
                                {x, kAbsent, typed(b, HostTensor::of<int64_t>(DType::i64, {}, {high}))});
  const auto plan = planned(b, clipped);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->constants.size(), 1u);
  EXPECT_EQ(plan->constants[0].value.data<int64_t>()[0], high);
}

}  // namespace
}  // namespace sparkle
