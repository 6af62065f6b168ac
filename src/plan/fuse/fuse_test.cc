// What becomes one step and what must not.
#include "plan/fuse/fuse.h"

#include <gtest/gtest.h>

#include "families/values/post_ops.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

using testing::conv_op;
using testing::GraphBuilder;

struct Net : GraphBuilder {
  TensorId x = input({1, 8, 6, 6});
  TensorId conv(TensorId from) { return op("Conv", conv_op(1), {from, weights({8, 8, 3, 3})}); }
  // Groups of the graph as it stands (shapes inferred, nothing simplified), anchors first.
  std::vector<Group> groups(std::vector<TensorId> outputs, bool enabled = true, const PostOpRules& post_ops = {}) {
    auto g = bound(std::move(outputs));
    EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().message);
    return fuse(*g, enabled, post_ops);
  }
};

TEST(Fuse, ResidualBeforeActivation) {
  Net net;
  const TensorId skip = net.input({1, 8, 6, 6});
  const TensorId sum = net.pointwise(PointwiseOp::add, {net.conv(net.x), skip});
  const auto groups = net.groups({net.pointwise(PointwiseOp::relu, {sum})});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].ops.size(), 3u);
  EXPECT_EQ(groups[0].epilogue.residuals_before, 1);
  EXPECT_EQ(groups[0].epilogue.residuals_after, 0);
  EXPECT_EQ(groups[0].epilogue.activation, Activation::relu);
}

TEST(Fuse, ResidualAfterActivation) {
  Net net;
  const TensorId skip = net.input({1, 8, 6, 6});
  const TensorId active = net.pointwise(PointwiseOp::relu, {net.conv(net.x)});
  const auto groups = net.groups({net.pointwise(PointwiseOp::add, {skip, active})});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].epilogue.residuals_before, 0);
  EXPECT_EQ(groups[0].epilogue.residuals_after, 1);
}

TEST(Fuse, NothingFollowsAResidualAfterTheActivation) {
  Net net;
  const TensorId active = net.pointwise(PointwiseOp::relu, {net.conv(net.x)});
  const TensorId sum = net.pointwise(PointwiseOp::add, {active, net.x});
  const auto groups = net.groups({net.pointwise(PointwiseOp::tanh, {sum})});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].ops.size(), 3u);
  EXPECT_LT(groups[1].anchor, 0);
}

TEST(Fuse, TwoResidualsAtMost) {
  Net net;
  TensorId sum = net.conv(net.x);
  for (int i = 0; i < 3; ++i) sum = net.pointwise(PointwiseOp::add, {sum, net.input({1, 8, 6, 6})});
  const auto groups = net.groups({sum});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].epilogue.residuals_before, 2);
}

TEST(Fuse, TheMatrixOfAGemmTakesAPlace) {
  GraphBuilder b;
  MatMulOp gemm;
  gemm.gemm = true;
  TensorId sum = b.op("Gemm", gemm, {b.input({4, 5}), b.input({5, 6}), b.input({4, 6})});
  for (int i = 0; i < 2; ++i) sum = b.pointwise(PointwiseOp::add, {sum, b.input({4, 6})});
  auto g = b.bound({sum});
  ASSERT_TRUE(g.ok()) << g.error().message;
  const auto groups = fuse(*g, true);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].epilogue.residuals_before, 1);
  const auto plan = make_plan(*g, testing::device_named("epyc-zen4"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto problem = from_text<Problem>(plan->steps[0].problem);
  ASSERT_TRUE(problem.ok());
  EXPECT_LE(problem->epilogue.residuals_before + problem->epilogue.residuals_after, 2);
}

TEST(Fuse, TwoConvolutionsMeetInAnAddition) {
  Net net;
  const TensorId a = net.conv(net.x), b = net.conv(net.x);
  const auto groups = net.groups({net.pointwise(PointwiseOp::relu, {net.pointwise(PointwiseOp::add, {a, b})})});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].ops.size(), 1u);  // the earlier one is ready when the later one adds it
  EXPECT_EQ(groups[1].ops.size(), 3u);
  EXPECT_EQ(groups[1].residuals, std::vector<TensorId>{a});
}

TEST(Fuse, WhatOthersReadStaysAValue) {
  Net net;
  const TensorId sum = net.conv(net.x);
  const TensorId active = net.pointwise(PointwiseOp::relu, {sum});
  EXPECT_EQ(net.groups({active, sum}).size(), 2u);                                               // an output of the model
  EXPECT_EQ(net.groups({net.pointwise(PointwiseOp::add, {active, net.conv(sum)})}).size(), 3u);  // read by another convolution
  Net twice;
  const TensorId y = twice.conv(twice.x);
  EXPECT_EQ(twice.groups({twice.pointwise(PointwiseOp::add, {y, y})}).size(), 2u);
}

TEST(Fuse, BroadcastResidualsStayOut) {
  Net net;
  const auto groups = net.groups({net.pointwise(PointwiseOp::add, {net.conv(net.x), net.input({1, 8, 1, 1})})});
  EXPECT_EQ(groups.size(), 2u);
}

TEST(Fuse, ChainsBecomeOneProgram) {
  Net net;
  const TensorId y = net.input({1, 8, 6, 6});
  const TensorId product = net.pointwise(PointwiseOp::mul, {net.pointwise(PointwiseOp::exp, {net.x}), y});
  const TensorId end = net.pointwise(PointwiseOp::sub, {product, net.pointwise(PointwiseOp::tanh, {y})});
  const auto groups = net.groups({end});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].program.program.size(), 4u);
  EXPECT_EQ(groups[0].operands, (std::vector<TensorId>{net.x, y}));
  // The program computes what the operators say.
  std::vector<double> values{0.3, 1.7};
  for (const PointwiseInstruction& step : groups[0].program.program)
    values.push_back(evaluate(step.op, values[static_cast<size_t>(step.x)], values[static_cast<size_t>(step.y)],
                              values[static_cast<size_t>(step.z)], step.a, step.b));
  EXPECT_NEAR(values.back(), std::exp(0.3) * 1.7 - std::tanh(1.7), 1e-12);
}

TEST(Fuse, LongChainsAreCut) {
  Net net;
  TensorId y = net.x;
  for (int i = 0; i < 60; ++i) y = net.pointwise(PointwiseOp::tanh, {y});
  const auto groups = net.groups({y});
  EXPECT_GE(groups.size(), 3u);
  for (const Group& g : groups) EXPECT_LE(g.program.program.size(), 24u);
  Net wide;
  TensorId sum = wide.x;
  for (int i = 0; i < 30; ++i) sum = wide.pointwise(PointwiseOp::max, {sum, wide.input({1, 8, 6, 6})});
  for (const Group& g : wide.groups({sum})) EXPECT_LE(g.operands.size(), 8u);
}

const PostOpRules kPostOps{true, {}};

// prelu(conv, slope) * sigmoid(gate): one step, operands in order, the sum in front.
TEST(FusePostOps, AProgramJoinsItsAnchor) {
  Net net;
  const TensorId slope = net.input({8, 1, 1}), gate = net.input({1, 8, 1, 1});
  const TensorId sum = net.conv(net.x);
  const TensorId open = net.pointwise(PointwiseOp::sigmoid, {gate});
  const TensorId bent = net.pointwise(PointwiseOp::prelu, {sum, slope});
  const TensorId end = net.pointwise(PointwiseOp::mul, {open, bent});
  EXPECT_EQ(net.groups({end}).size(), 3u);
  const auto groups = net.groups({end}, true, kPostOps);
  ASSERT_EQ(groups.size(), 2u);  // the gate alone is smaller, and a step of its own
  const Group& g = groups[1];
  EXPECT_EQ(g.ops.size(), 3u);
  EXPECT_EQ(g.output, end);
  EXPECT_EQ(g.behind, (std::vector<TensorId>{open, slope}));
  ASSERT_EQ(g.epilogue.post_op.inputs, 3);
  const double values[] = {-2, 0.25, 0.5};
  EXPECT_DOUBLE_EQ(evaluate(g.epilogue.post_op, values), -2 * 0.5 * 0.25);
}

TEST(FusePostOps, AllReadersOfTheSumMayLieInOneProgram) {
  Net net;
  const TensorId sum = net.conv(net.x);
  const TensorId half = net.pointwise(PointwiseOp::affine, {net.pointwise(PointwiseOp::sigmoid, {sum})}, 0.5, 1);
  const auto groups = net.groups({net.pointwise(PointwiseOp::mul, {sum, half})}, true, kPostOps);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].behind.empty());
  const double value[] = {0.7};
  EXPECT_NEAR(evaluate(groups[0].epilogue.post_op, value), 0.7 * (0.5 / (1 + std::exp(-0.7)) + 1), 1e-12);
}

TEST(FusePostOps, TwoAnchorsThatMeet) {
  Net net;
  const TensorId a = net.conv(net.x), b = net.conv(net.x);
  const TensorId end = net.pointwise(PointwiseOp::mul, {a, b});
  const auto groups = net.groups({end}, true, kPostOps);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[1].behind, std::vector<TensorId>{a});
  const int later = groups[1].anchor;
  const auto earlier = net.groups({end}, true, {true, {later}});
  ASSERT_EQ(earlier.size(), 2u);
  EXPECT_EQ(earlier[1].behind, std::vector<TensorId>{b});
  EXPECT_EQ(net.groups({end}, true, {true, {later, groups[0].anchor}}).size(), 3u);
}

TEST(FusePostOps, WhatStaysApart) {
  const auto count = [](auto&& make) {
    Net net;
    return net.groups(make(net), true, kPostOps).size();
  };
  // The sum is needed elsewhere; a comparison's truth value is of another type; too many operands; a wider result.
  EXPECT_EQ(count([](Net& n) {
              const TensorId sum = n.conv(n.x);
              return std::vector{n.pointwise(PointwiseOp::prelu, {sum, n.input({8, 1, 1})}), sum};
            }),
            2u);
  EXPECT_EQ(count([](Net& n) { return std::vector{n.pointwise(PointwiseOp::less, {n.conv(n.x), n.input({8, 1, 1})})}; }), 2u);
  EXPECT_EQ(count([](Net& n) {
              TensorId y = n.conv(n.x);
              for (int i = 0; i < 5; ++i) y = n.pointwise(PointwiseOp::max, {y, n.input({1, 8, 6, 6})});
              return std::vector{y};
            }),
            2u);
  EXPECT_EQ(count([](Net& n) { return std::vector{n.pointwise(PointwiseOp::mul, {n.conv(n.x), n.input({3, 8, 6, 6})})}; }), 2u);
}

// Golden: what a device's word and its denylist do to a plan.
TEST(FusePostOps, PlansOfDevices) {
  GraphBuilder b;
  const TensorId sum = b.op("Conv", conv_op(1), {b.input({1, 64, 28, 28}), b.weights({64, 64, 3, 3})});
  auto g = b.bound({b.pointwise(PointwiseOp::prelu, {sum, b.weights({64, 1, 1})})});
  ASSERT_TRUE(g.ok()) << g.error().message;
  const auto post_ops = [&](const Device& device) {
    const auto plan = make_plan(*g, device);
    EXPECT_TRUE(plan.ok());
    int count = 0;
    for (const PlanStep& step : plan->steps) count += step.problem.find(" tail={") != std::string::npos;
    return count;
  };
  EXPECT_EQ(post_ops(testing::device_named("epyc-zen4")), 0);
  Device gpu = testing::device_named("radeon-rx-7900-xtx");
  EXPECT_EQ(post_ops(gpu), 1);
  const auto plan = make_plan(*g, gpu);
  for (const PlanStep& step : plan->steps) {
    if (step.problem.empty()) continue;
    const auto problem = from_text<Problem>(step.problem);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    EXPECT_EQ(to_text(*problem), step.problem);
    EXPECT_EQ(expression(problem->epilogue.post_op), "prelu(x0,x1)");
    for (const char* family : {"gemm", "winograd", "depthwise"})
      gpu.denylist += (gpu.denylist.empty() ? "" : " ") + std::string(family) + "/" + post_op_name(problem->epilogue.post_op);
  }
  EXPECT_EQ(post_ops(gpu), 0);
  const auto apart = make_plan(*g, gpu);
  bool said = false;
  for (const PlanStep& step : apart->steps)
    for (const Candidate& c : step.candidates) said |= c.algorithm == "tail" && c.reason == Reason::failed_probe;
  EXPECT_TRUE(said);
}

TEST(Fuse, SwitchedOffEveryOperatorIsAlone) {
  Net net;
  const TensorId sum = net.pointwise(PointwiseOp::add, {net.conv(net.x), net.x});
  const auto groups = net.groups({net.pointwise(PointwiseOp::exp, {net.pointwise(PointwiseOp::relu, {sum})})}, false);
  EXPECT_EQ(groups.size(), 4u);
  for (const Group& g : groups) EXPECT_EQ(g.ops.size(), 1u);
}

}  // namespace
}  // namespace sparkle
