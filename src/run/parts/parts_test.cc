// Models that run in parts: what sessions say of them. Values: tests/vectors/control.py.
#include "run/parts/parts.h"

#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "graph/test_graphs.h"
#include "run/session.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

HostOp host(HostKind kind, int64_t own) {
  HostOp op;
  op.kind = kind, op.own = own;
  return op;
}

// A loop that adds x to a state of its own; its condition is passed on.
Graph adding_loop(int64_t steps, bool known) {
  GraphBuilder body;
  const TensorId number = body.input({}, DType::i64), again = body.input({}, DType::boolean);
  const TensorId state = body.input({2}), x = body.input({2});
  const TensorId next = body.pointwise(PointwiseOp::add, {state, x});
  body.graph.outputs = {again, next};
  (void)number;
  GraphBuilder b;
  const TensorId start = b.input({2});
  const TensorId count =
      known ? b.graph.add_constant("m", HostTensor::of(DType::i64, {}, std::vector<int64_t>{steps})) : b.input({}, DType::i64);
  HostOp loop = host(HostKind::loop, 3);
  loop.bodies.push_back(std::make_shared<const Graph>(body.graph));
  b.done(b.op("Loop", loop, {count, kAbsent, start, start}));
  return b.graph;
}

TEST(Parts, LoopsOfFewStepsAreOnePlan) {
  auto session = Session::open(adding_loop(3, true), make_reference_backend(), {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  EXPECT_FALSE((*session)->in_parts());
  const auto y = (*session)->run({HostTensor::of(DType::f32, {2}, std::vector<float>{1, -2})});
  ASSERT_TRUE(y.ok()) << y.error().message;
  EXPECT_EQ((*y)[0].data<float>()[1], -8);
}

TEST(Parts, StepsThatTheDataCountsHaveNoSinglePlan) {
  auto session = Session::open(adding_loop(0, false), make_reference_backend(), {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  EXPECT_TRUE((*session)->in_parts());
  const auto inputs = [](int64_t steps) {
    return std::vector<HostTensor>{HostTensor::of(DType::f32, {2}, std::vector<float>{1, -2}),
                                   HostTensor::of(DType::i64, {}, std::vector<int64_t>{steps})};
  };
  const auto y = (*session)->run(inputs(4));
  ASSERT_TRUE(y.ok()) << y.error().message;
  EXPECT_EQ((*y)[0].data<float>()[0], 5);
  const auto plan = (*session)->prepare(inputs(4));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().reason, Reason::bad_usage);
  EXPECT_NE(plan.error().message.find("Loop x1"), std::string::npos) << plan.error().message;
}

TEST(Parts, NoStepsStackUpNothingOfTheDeclaredType) {
  Graph body;
  GraphBuilder inner;
  const TensorId i = inner.input({}, DType::i64), on = inner.input({}, DType::boolean);
  const TensorId slice = inner.input({-1, 3}, DType::i64);
  (void)i;
  inner.graph.outputs = {on, slice};
  inner.graph.tensor(slice).shape = Dims({-1, 3});
  HostOp loop = host(HostKind::loop, 2);
  loop.bodies = {std::make_shared<const Graph>(inner.graph)};
  GraphBuilder b;
  const TensorId steps = b.input({}, DType::i64), x = b.input({2, 3}, DType::i64);
  b.done(b.op("Loop", loop, {steps, kAbsent, x}));
  auto session = Session::open(b.graph, make_reference_backend(), {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto y = (*session)->run(
      {HostTensor::of(DType::i64, {}, std::vector<int64_t>{0}), HostTensor::of(DType::i64, {2, 3}, std::vector<int64_t>(6))});
  ASSERT_TRUE(y.ok()) << y.error().message;
  EXPECT_EQ((*y)[0].dtype, DType::i64);
  EXPECT_EQ((*y)[0].shape, Dims({0, 0, 3}));
}

TEST(Parts, PositionsOfNothing) {
  GraphBuilder b;
  const TensorId x = b.input({-1, 2});
  b.done(b.op("NonZero", host(HostKind::non_zero, 1), {x}));
  auto session = Session::open(b.graph, make_reference_backend(), {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto y = (*session)->run({HostTensor::zeros(DType::f32, {3, 2})});
  ASSERT_TRUE(y.ok()) << y.error().message;
  EXPECT_EQ((*y)[0].shape, Dims({2, 0}));
}

}  // namespace
}  // namespace sparkle
