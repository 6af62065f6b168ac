// ModelCheck: what memory was wiped to is no answer even where the answer is NaN, numbers of 8 bits may be a step away where
// they were floats and others may not, and what outputs may be off by grows with a plan's steps.
#include "measure/checks/model_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "graph/test_graphs.h"
#include "graph/evaluate/values.h"
#include "run/wipe.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

struct Made {
  std::unique_ptr<Session> session;
  std::shared_ptr<const Plan> plan;
  ModelCheck check;
};
// A model's plan and what its outputs must be. The reference backend's own here: it is the check that is looked at.
Made made(const std::function<Graph()>& graph, const std::vector<HostTensor>& inputs) {
  Made m;
  auto session = Session::open(graph(), make_reference_backend(), {});
  EXPECT_TRUE(session.ok());
  m.session = std::move(*session);
  auto plan = m.session->prepare(inputs);
  EXPECT_TRUE(plan.ok());
  m.plan = *plan;
  auto check = ModelCheck::make({graph(), {}, nullptr}, *m.plan, inputs, {});
  EXPECT_TRUE(check.ok());
  m.check = std::move(*check);
  return m;
}
std::vector<HostTensor> answer(const Made& m, const std::vector<HostTensor>& inputs, std::byte wiped_to) {
  auto outputs = m.session->run_wiped(inputs, wiped_to);
  EXPECT_TRUE(outputs.ok());
  return std::move(*outputs);
}

TEST(ModelCheck, WhatIsNanMustBeWrittenToo) {
  const auto graph = [] {
    GraphBuilder g;
    return g.done(g.pointwise(PointwiseOp::relu, {g.input({8})}));
  };
  const std::vector<HostTensor> inputs{from_doubles(DType::f32, {8}, {1, -2, NAN, 3, 4, 5, 6, NAN})};
  Made m = made(graph, inputs);
  for (const std::byte wiped_to : {kWipedToNan, kWipedToNumbers})
    EXPECT_TRUE(m.check.accept(answer(m, inputs, wiped_to), "here").ok());
  // Each element in turn is left as memory was wiped: one of the two runs finds it.
  for (int64_t left = 0; left < 8; ++left) {
    int found = 0;
    for (const std::byte wiped_to : {kWipedToNan, kWipedToNumbers}) {
      auto outputs = answer(m, inputs, wiped_to);
      std::memset(outputs[0].bytes.get() + 4 * left, std::to_integer<int>(wiped_to), 4);
      found += !m.check.accept(outputs, "here").ok();
    }
    EXPECT_GT(found, 0) << left;
  }
}

TEST(ModelCheck, NumbersThatWereFloatsMayBeAStepAway) {
  const auto quantized = [] {
    GraphBuilder g;
    const TensorId zero = g.graph.add_constant("zero", from_doubles(DType::u8, {}, {3}));
    return g.done(g.op("QuantizeLinear", QuantizeOp{}, {g.input({4}), g.floats({}, {0.5f}), zero}));
  };
  const std::vector<HostTensor> floats{from_doubles(DType::f32, {4}, {1, 2, 3.25, 4})};
  Made m = made(quantized, floats);
  auto outputs = answer(m, floats, kWipedToNan);
  EXPECT_TRUE(m.check.accept(outputs, "here").ok());
  outputs[0].data<uint8_t>()[2] += 1;
  EXPECT_TRUE(m.check.accept(outputs, "here").ok());
  outputs[0].data<uint8_t>()[2] += 1;
  const Status wrong = m.check.accept(outputs, "here");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("element 2"), std::string::npos) << wrong.error().message;

  // Where there are no floats there is nothing to round.
  const auto copied = [] {
    GraphBuilder g;
    return g.done(g.pointwise(PointwiseOp::add, {g.input({4}, DType::u8), g.input({4}, DType::u8)}));
  };
  const HostTensor bytes = from_doubles(DType::u8, {4}, {1, 2, 3, 4});
  Made whole = made(copied, {bytes, bytes});
  auto same = answer(whole, {bytes, bytes}, kWipedToNan);
  EXPECT_TRUE(whole.check.accept(same, "here").ok());
  same[0].data<uint8_t>()[2] += 1;
  EXPECT_FALSE(whole.check.accept(same, "here").ok());
}

TEST(ModelCheck, RanksAreExact) {
  const auto graph = [] {
    GraphBuilder g;
    return g.done(g.op("ArgMax", ArgOp{}, {g.input({4, 3})}));
  };
  const std::vector<HostTensor> inputs{from_doubles(DType::f32, {4, 3}, {0, 1, 2, 5, 5, 5, 5, 4, 3, 2, 1, 0})};
  Made m = made(graph, inputs);
  auto outputs = answer(m, inputs, kWipedToNan);
  EXPECT_TRUE(m.check.accept(outputs, "here").ok());
  outputs[0].data<int64_t>()[0] += 1;  // as good, but not the first
  EXPECT_FALSE(m.check.accept(outputs, "here").ok());
}

TEST(ModelCheck, AnotherDeviceMayBeTheJudge) {
  const auto graph = [] {
    GraphBuilder g;
    return g.done(g.op("MatMul", MatMulOp{}, {g.input({2, 3}), g.floats({3, 2}, {1, 2, 3, 4, 5, 6})}));
  };
  const std::vector<HostTensor> inputs{from_doubles(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})};
  Made m = made(graph, inputs);
  auto check = ModelCheck::make({graph(), {}, nullptr}, *m.plan, inputs, {},
                                cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(1)));
  ASSERT_TRUE(check.ok());
  auto outputs = answer(m, inputs, kWipedToNan);
  EXPECT_TRUE(check->accept(outputs, "here").ok());
  EXPECT_NE(check->text().find("of the CPU's kernels, 1 times"), std::string::npos) << check->text();
  outputs[0].data<float>()[3] += 1;
  const Status wrong = check->accept(outputs, "here");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("where the CPU's kernels give 64"), std::string::npos) << wrong.error().message;
}

TEST(ModelCheck, ErrorsOfStepsAddUp) {
  const auto products = [](int count, int64_t depth) {
    return [=] {
      GraphBuilder g;
      TensorId x = g.input({2, depth});
      for (int i = 0; i < count; ++i)
        x = g.op("MatMul", MatMulOp{},
                 {x, g.floats({depth, depth}, std::vector<float>(static_cast<size_t>(depth * depth), 0.1f))});
      return g.done(x);
    };
  };
  const auto error = [&](int count, int64_t depth) {
    const std::vector<HostTensor> inputs{
        from_doubles(DType::f32, {2, depth}, std::vector<double>(static_cast<size_t>(2 * depth), 1))};
    return error_of_plan(*made(products(count, depth), inputs).plan);
  };
  EXPECT_NEAR(error(4, 64) / error(1, 64), 4, 1e-9);
  EXPECT_GT(error(1, 256), error(1, 64));
  // Sums of 64 in f32, exact to some 24 roundings.
  EXPECT_NEAR(error(1, 64), 24 * 0x1p-23, 1e-9);
}

}  // namespace
}  // namespace sparkle
