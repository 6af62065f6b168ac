// Blocks: which chains of convolutions become one step, when, and what is said where they do not.
#include "plan/choose/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "families/inverted/inverted.h"
#include "families/reduce/reduce.h"
#include "plan/explain.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

using testing::conv_op;
using testing::GraphBuilder;

struct Net : GraphBuilder {
  TensorId x = input({1, 24, 56, 56});
  TensorId relu(TensorId from) { return pointwise(PointwiseOp::relu, {from}); }
  TensorId pointwise_conv(TensorId from, int64_t c, int64_t k) {
    return op("Conv", conv_op(0), {from, weights({k, c, 1, 1}, -0.3f), weights({k})});
  }
  TensorId depthwise(TensorId from, int64_t c, int64_t filter = 3) {
    return op("Conv", conv_op(filter / 2, c), {from, weights({c, 1, filter, filter}, -0.2f), weights({c})});
  }
  Plan plan(TensorId output, const PlanOptions& options = {}, const char* device = "epyc-zen4") {
    auto graph = testing::ready(done(output));
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    auto made = make_plan(*graph, testing::device_named(device), options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
};

// Algorithms of the steps but copies.
std::string steps_of(const Plan& plan) {
  std::string text;
  for (const PlanStep& step : plan.steps)
    if (step.algorithm != "copy") text += (text.empty() ? "" : " ") + step.algorithm;
  return text;
}

bool expands(const Plan& plan) {
  for (const PlanStep& step : plan.steps)
    if (const auto* p = get_if<InvertedParams>(&step.stage.params)) return p->expand;
  return false;
}

const Candidate* candidate(const Plan& plan, std::string_view algorithm) {
  for (const PlanStep& step : plan.steps)
    for (const Candidate& c : step.candidates)
      if (c.algorithm == algorithm) return &c;
  return nullptr;
}

PlanOptions fusion(const std::string& name) {
  PlanOptions options;
  options.fusion = name;
  return options;
}

TEST(Blocks, AnInvertedResidualIsOneStep) {
  Net net;
  const TensorId wide = net.relu(net.pointwise_conv(net.x, 24, 144));
  const TensorId narrow = net.pointwise_conv(net.relu(net.depthwise(wide, 144)), 144, 24);
  const TensorId y = net.pointwise(PointwiseOp::add, {narrow, net.x});
  const Plan plan = net.plan(y);
  ASSERT_EQ(steps_of(plan), "inverted");
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(), [](const auto& s) { return s.algorithm == "inverted"; });
  EXPECT_TRUE(expands(plan));
  EXPECT_EQ(step->nodes.size(), 6u);  // three convolutions, two activations, an addition
  EXPECT_EQ(step->inputs.size(), 8u);
  EXPECT_EQ(step->footprint.nominal_flops, 2.0 * 144 * 56 * 56 * (24 + 9 + 24));
  EXPECT_EQ(get<InvertedParams>(step->stage.params).project.residuals_before, 1);
  // The layers apart are shown with their cost, which is larger.
  const Candidate* apart = candidate(plan, "apart");
  ASSERT_TRUE(apart && apart->cost);
  EXPECT_EQ(apart->reason, Reason::costlier);
  EXPECT_GT(apart->cost->seconds, step->cost.seconds);
  ExplainOptions all;
  all.candidates = true;
  const std::string text = explain(plan, testing::device_named("epyc-zen4"), all);
  EXPECT_NE(text.find("24x56x56 -> 144 -> 3x3 -> 24 +add"), std::string::npos) << text;
  EXPECT_NE(text.find("apart"), std::string::npos);
  // The wide planes need no memory: less than one of them is reserved.
  EXPECT_LT(plan.arena_bytes, int64_t{144} * 56 * 56 * 4);
}

TEST(Blocks, OffAndOnByName) {
  Net net;
  const TensorId wide = net.relu(net.pointwise_conv(net.x, 24, 144));
  const TensorId y = net.pointwise_conv(net.relu(net.depthwise(wide, 144)), 144, 24);
  EXPECT_EQ(steps_of(net.plan(y, fusion("inverted"))), "inverted");
  EXPECT_EQ(candidate(net.plan(y, fusion("inverted")), "apart")->reason, Reason::forced_other);
  const Plan off = net.plan(y, fusion("none"));
  EXPECT_EQ(steps_of(off), "direct depthwise direct");
  EXPECT_EQ(candidate(off, "inverted")->reason, Reason::forced_other);
  // Whoever forces an algorithm or a variant of the layers wants to see them.
  PlanOptions forced;
  forced.algorithm = "gemm";
  EXPECT_EQ(steps_of(net.plan(y, forced)), "gemm gemm gemm");
  forced = {}, forced.variant = "tile1x7";
  EXPECT_EQ(steps_of(net.plan(y, forced)), "direct depthwise direct");
  forced = {}, forced.fuse = false;
  EXPECT_EQ(candidate(net.plan(y, forced), "apart"), nullptr);
  const auto graph = testing::ready(net.done(y));
  const auto wrong = make_plan(*graph, testing::device_named("epyc-zen4"), fusion("both"));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().reason, Reason::bad_usage);
}

TEST(Blocks, WithoutExpansionTheLastTwo) {
  Net net;
  const TensorId deep = net.relu(net.depthwise(net.x, 24));
  const Plan plan = net.plan(net.relu(net.pointwise_conv(deep, 24, 48)), fusion("inverted"));
  EXPECT_EQ(steps_of(plan), "inverted");
  EXPECT_FALSE(expands(plan));

  Net twice;  // a projection belongs to the block before it
  const TensorId first = twice.relu(twice.pointwise_conv(twice.relu(twice.depthwise(twice.x, 24)), 24, 48));
  const Plan both =
      twice.plan(twice.relu(twice.pointwise_conv(twice.relu(twice.depthwise(first, 48)), 48, 48)), fusion("inverted"));
  EXPECT_EQ(steps_of(both), "inverted inverted");
  EXPECT_FALSE(expands(both));
}

TEST(Blocks, OtherReadersKeepLayersApart) {
  {  // squeeze and excitation between depthwise and projection
    Net net;
    const TensorId deep = net.relu(net.depthwise(net.relu(net.pointwise_conv(net.x, 24, 144)), 144));
    const TensorId squeezed = net.op("GlobalAveragePool", ReduceOp{ReduceKind::mean, {2, 3}, true}, {deep});
    const TensorId gate = net.pointwise(PointwiseOp::sigmoid, {net.pointwise_conv(squeezed, 144, 144)});
    const TensorId excited = net.pointwise(PointwiseOp::mul, {deep, gate});
    const Plan plan = net.plan(net.pointwise_conv(excited, 144, 24), fusion("inverted"));
    EXPECT_EQ(steps_of(plan).find("inverted"), std::string::npos) << steps_of(plan);
    EXPECT_EQ(candidate(plan, "inverted")->reason, Reason::other_reader);
  }
  {  // the wide plane is read twice: the last two layers remain
    Net net;
    const TensorId wide = net.relu(net.pointwise_conv(net.x, 24, 144));
    const TensorId y = net.pointwise_conv(net.relu(net.depthwise(wide, 144)), 144, 144);
    const Plan plan = net.plan(net.pointwise(PointwiseOp::mul, {y, wide}), fusion("inverted"));
    EXPECT_NE(steps_of(plan).find("inverted"), std::string::npos) << steps_of(plan);
    EXPECT_FALSE(expands(plan));
  }
  {  // the depthwise result is an output of the model
    Net net;
    const TensorId deep = net.relu(net.depthwise(net.x, 24));
    const TensorId y = net.pointwise_conv(deep, 24, 24);
    net.done(y);
    net.graph.outputs.push_back(deep);
    const auto graph = testing::ready(net.graph);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const Plan plan = *make_plan(*graph, testing::device_named("epyc-zen4"), fusion("inverted"));
    EXPECT_EQ(candidate(plan, "inverted")->reason, Reason::other_reader);
  }
}

TEST(Blocks, ReasonsOfFiltersAndDevices) {
  Net net;
  const TensorId y = net.pointwise_conv(net.depthwise(net.x, 24, 7), 24, 24);
  const Plan plan = net.plan(y);
  EXPECT_EQ(steps_of(plan).find("inverted"), std::string::npos) << steps_of(plan);
  EXPECT_EQ(candidate(plan, "inverted")->reason, Reason::filter_not_served);
  EXPECT_EQ(candidate(net.plan(y, {}, "h200"), "inverted")->reason, Reason::no_kernel);
}

}  // namespace
}  // namespace sparkle
