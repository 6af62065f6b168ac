// Copies that convolutions do without: when a picture is read as the planes it comes in, and when not.
#include "plan/memory/copy_elimination.h"

#include <gtest/gtest.h>

#include "plan/plan_testing.h"

namespace sparkle {
namespace {

using testing::conv_op;
using testing::GraphBuilder;

struct Net : GraphBuilder {
  TensorId conv(TensorId from, int64_t c, int64_t k) { return op("Conv", conv_op(1), {from, weights({k, c, 3, 3}, -0.2f)}); }
  TensorId pool(TensorId from, int64_t filter, int64_t stride) {
    PoolOp pool;
    pool.kind = PoolKind::average;
    pool.kernel = {filter, filter}, pool.strides = {stride, stride}, pool.dilations = {1, 1};
    pool.pads_begin = pool.pads_end = {filter / 2, filter / 2};
    return op("AveragePool", pool, {from});
  }
  // Algorithms of the steps, in order.
  std::string steps(TensorId output, const PlanOptions& options = {}) {
    auto graph = testing::ready(done(output));
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    auto plan = make_plan(*graph, testing::device_named("epyc-zen4"), options);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    std::string text;
    for (const PlanStep& step : plan->steps) text += (text.empty() ? "" : " ") + step.algorithm;
    first = plan->tensors[static_cast<size_t>(plan->steps[0].inputs[0])];
    return text;
  }
  PlanTensor first;  // what the first step of the latest plan reads
};

TEST(CopyElimination, PicturesAreReadAsTheyCome) {
  Net net;
  const TensorId x = net.input({1, 3, 64, 64});
  EXPECT_EQ(net.steps(net.conv(x, 3, 24)), "direct copy");  // the copy of the output back
  EXPECT_EQ(net.first.kind, PlaceKind::input);
}

TEST(CopyElimination, OtherAlgorithmsAndWideLayersKeepTheirCopy) {
  Net few, wide;
  PlanOptions gemm;
  gemm.algorithm = "gemm";
  EXPECT_EQ(few.steps(few.conv(few.input({1, 3, 64, 64}), 3, 24), gemm), "copy gemm copy");
  EXPECT_EQ(wide.steps(wide.conv(wide.input({1, 16, 20, 20}), 16, 24)).substr(0, 5), "copy ");
}

TEST(CopyElimination, ACopyThatTwoReadStays) {
  Net net;
  const TensorId x = net.input({1, 3, 64, 64});
  const TensorId sum = net.pointwise(PointwiseOp::add, {net.conv(x, 3, 24), net.conv(x, 3, 24)});
  EXPECT_EQ(net.steps(sum).substr(0, 5), "copy ");
}

TEST(CopyElimination, PoolsBetweenPlanesWorkOnThese) {
  Net alone, small, before, after;
  EXPECT_EQ(alone.steps(alone.pool(alone.input({1, 64, 112, 112}), 3, 1)), "pool");
  EXPECT_EQ(alone.first.kind, PlaceKind::input);
  // Rows of a part of a vector cost more than the copies.
  EXPECT_EQ(small.steps(small.pool(small.input({1, 512, 7, 7}), 3, 1)), "copy pool copy");
  // What convolutions read and write has the channels side by side.
  EXPECT_EQ(before.steps(before.conv(before.pool(before.input({1, 64, 56, 56}), 3, 2), 64, 64)).substr(0, 10), "copy pool ");
  const std::string steps = after.steps(after.pool(after.conv(after.input({1, 64, 56, 56}), 64, 64), 3, 2));
  EXPECT_EQ(steps.substr(steps.size() - 10), " pool copy");
}

// Of few channels in fp16, on a GPU whose kernels read and write planes.
TEST(CopyElimination, ConvolutionsBetweenPlanesWorkOnThese) {
  const Device gpu = testing::device_named("h200");
  const auto steps = [&](int64_t c, int64_t k, double accuracy) {
    Net net;
    auto graph = testing::ready(net.done(net.conv(net.input({256, c, 64, 64}), c, k)));
    EXPECT_TRUE(graph.ok());
    PlanOptions options;
    options.accuracy = accuracy;
    const auto plan = make_plan(*graph, gpu, options);
    EXPECT_TRUE(plan.ok());
    std::string text;
    for (const PlanStep& step : plan->steps) text += variant_of(step.schedule) + " ";
    return text;
  };
  EXPECT_EQ(steps(4, 8, 1e-3), "few ");
  EXPECT_EQ(steps(1, 8, 1e-3), "few ");
  EXPECT_NE(steps(4, 8, 1e-5).find("units"), std::string::npos);
  EXPECT_EQ(steps(64, 8, 1e-3).find("few"), std::string::npos);
}

}  // namespace
}  // namespace sparkle
