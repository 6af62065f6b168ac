// What operators give at the edges of their domain, and the forms that the newest opsets added: on both backends.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/thread_pool.h"
#include "device/probe_cpu.h"
#include "graph/test_graphs.h"
#include "run/session.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

HostTensor floats(const Dims& shape, const std::vector<float>& values) { return HostTensor::of(DType::f32, shape, values); }

// The outputs of both backends, one tensor each.
std::vector<HostTensor> outputs(const Graph& graph, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> results;
  for (const auto& backend : {cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)), make_reference_backend()}) {
    auto session = Session::open(graph, backend, {});
    EXPECT_TRUE(session.ok());
    if (!session.ok()) return {};
    auto got = (*session)->run(inputs);
    EXPECT_TRUE(got.ok()) << (got.ok() ? "" : got.error().message);
    if (!got.ok()) return {};
    results.push_back((*got)[0]);
  }
  return results;
}

void expect_values(const Graph& graph, const std::vector<HostTensor>& inputs, const std::vector<float>& want) {
  const auto results = outputs(graph, inputs);
  ASSERT_EQ(results.size(), 2u);
  for (const HostTensor& y : results) {
    ASSERT_EQ(y.elements(), static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < want.size(); ++i) {
      const float v = y.data<float>()[i];
      EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(v) : v == want[i] && std::signbit(v) == std::signbit(want[i]))
          << "element " << i << ": " << v << " instead of " << want[i];
    }
  }
}

TEST(EdgeValues, RemaindersTakeTheSignOfTheDivisor) {
  GraphBuilder b;
  const TensorId x = b.input({14}), y = b.input({14});
  expect_values(b.done(b.pointwise(PointwiseOp::floor_mod, {x, y})),
                {floats({14}, {0.0f, -0.0f, 0.0f, -0.0f, -3, 3, -1, 1, kInfinity, -kInfinity, 1, 1, kNan, 1}),
                 floats({14}, {-2, 2, 2, -2, kInfinity, kInfinity, -kInfinity, -kInfinity, 2, 2, 0.0f, -0.0f, 2, kNan})},
                {-0.0f, 0.0f, 0.0f, -0.0f, kInfinity, 3, -1, -kInfinity, kNan, kNan, kNan, kNan, kNan, kNan});
}

TEST(EdgeValues, ZeroOverItsNormIsZero) {
  for (int64_t p : {1, 2}) {
    GraphBuilder b;
    const TensorId x = b.input({3, 2});
    expect_values(b.done(b.op("LpNormalization", LpNormalizationOp{-1, p}, {x})), {floats({3, 2}, {0, 0, 0, 4, -2, 0})},
                  {0, 0, 0, 1, -1, 0});
  }
}

TEST(EdgeValues, ExtremaOfNoTruthValues) {
  for (ReduceKind kind : {ReduceKind::max, ReduceKind::min}) {
    GraphBuilder b;
    const TensorId x = b.input({2, 0, 3}, DType::boolean);
    ReduceOp op;
    op.kind = kind;
    const auto results = outputs(b.done(b.op("Reduce", op, {x, b.ints({1})})), {HostTensor::zeros(DType::boolean, {2, 0, 3})});
    ASSERT_EQ(results.size(), 2u);
    for (const HostTensor& y : results) {
      ASSERT_EQ(y.elements(), 6);
      for (int i = 0; i < 6; ++i) EXPECT_EQ(y.data<uint8_t>()[i], kind == ReduceKind::min);
    }
  }
}

TEST(EdgeValues, SpaceToDepthInBothOrders) {
  std::vector<float> values(2 * 2 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (bool columns_first : {false, true}) {
    GraphBuilder b;
    const TensorId x = b.input({1, 2, 2, 4});
    expect_values(b.done(b.op("SpaceToDepth", SpaceToDepthOp{2, columns_first}, {x})), {floats({1, 2, 2, 4}, values)},
                  columns_first ? std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}
                                : std::vector<float>{0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15});
  }
}

// Two casts like tensors whose types the model does not say; neither is taken for the other's repetition.
TEST(EdgeValues, CastsLikeWhatIsComputed) {
  GraphBuilder b;
  const TensorId x = b.input({3}), i = b.op("Cast", CastOp{DType::i32}, {x});
  const TensorId whole = b.op("CastLike", CastOp{}, {x, i}), back = b.op("CastLike", CastOp{}, {whole, x});
  expect_values(b.done(back), {floats({3}, {1.75f, -2.5f, 3})}, {1, -2, 3});
}

}  // namespace
}  // namespace sparkle
