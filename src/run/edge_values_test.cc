// What operators give at the edges of their domain, and the forms that the newest opsets added: on both backends.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "graph/test_graphs.h"
#include "run/edge_cases_testing.h"
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

// The table of docs/nan_and_infinity.md, fused and not, on the reference and on each vector unit of this machine.
TEST(EdgeValues, EveryFamilyKeepsTheTable) {
  const Device here = probe_cpu();
  std::vector<std::shared_ptr<Backend>> backends{make_reference_backend()};
  for (const MathUnit& unit : here.units) {
    if (unit.kind != UnitKind::vector_fma || unit.input != DType::f32) continue;
    Device device = here;
    std::erase_if(device.units, [&](const MathUnit& u) { return u.kind == UnitKind::vector_fma && u.name != unit.name; });
    backends.push_back(cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(2)));
  }
  const std::vector<testing::EdgeCase> cases = testing::edge_cases();
  EXPECT_GT(cases.size(), 80u);
  for (const auto& backend : backends)
    for (const bool fuse : {true, false})
      for (const testing::EdgeCase& edge : cases) {
        SessionOptions options;
        options.fuse = fuse;
        auto session = Session::open(edge.graph, backend, options);
        ASSERT_TRUE(session.ok()) << edge.name << ": " << session.error().message;
        auto got = (*session)->run(edge.inputs);
        ASSERT_TRUE(got.ok()) << edge.name << ": " << got.error().message;
        EXPECT_EQ(testing::edge_difference(edge, (*got)[0]), "")
            << backend->device().name << " " << (backend->device().units.empty() ? "" : backend->device().units[0].name);
      }
}

// A convolution of 64 channels, Winograd's by cost, on a map with one pixel that is infinite, NaN or near the end of the range:
// with exact_nonfinite what it touches are the nine outputs whose windows hold it, as the reference has them, and no other.
TEST(EdgeValues, AnExactConvolutionKeepsWhatIsNotFiniteInItsWindows) {
  constexpr int64_t kSize = 20;
  GraphBuilder b;
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  const TensorId x = b.input({1, 64, kSize, kSize});
  std::vector<float> weights(size_t{64} * 64 * 9);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.01f * static_cast<float>(1 + i % 7);
  const Graph graph = b.done(b.op("Conv", conv, {x, b.floats({64, 64, 3, 3}, weights)}));
  const auto backend = cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2));
  const auto algorithm_of = [&](bool exact, const HostTensor& input, HostTensor& y) {
    SessionOptions options;
    options.exact_nonfinite = exact;
    auto session = Session::open(graph, backend, options);
    RunReport report;
    auto got = (*session)->run({input}, &report);
    EXPECT_TRUE(got.ok());
    y = (*got)[0];
    for (const PlanStep& step : report.plan->steps)
      if (!step.problem.empty()) return step.algorithm;
    return std::string();
  };
  for (const float pixel : {kInfinity, -kInfinity, kNan, 3e38f}) {
    HostTensor input = HostTensor::zeros(DType::f32, {1, 64, kSize, kSize});
    for (int64_t i = 0; i < input.elements(); ++i) input.data<float>()[i] = 1;
    input.data<float>()[5 * kSize + 5] = pixel;
    HostTensor y;
    EXPECT_TRUE(algorithm_of(false, input, y).starts_with("winograd"));
    EXPECT_FALSE(algorithm_of(true, input, y).starts_with("winograd"));
    for (int64_t i = 0; i < y.elements(); ++i) {
      const int64_t row = i / kSize % kSize, column = i % kSize;
      const bool inside = std::abs(row - 5) <= 1 && std::abs(column - 5) <= 1;
      const float v = y.data<float>()[i];
      if (!inside) ASSERT_TRUE(v > 0 && v < 100) << pixel << " has reached " << row << ", " << column << ": " << v;
      else if (std::isnan(pixel)) ASSERT_TRUE(std::isnan(v)) << row << ", " << column;
      else if (std::isinf(pixel)) ASSERT_EQ(v, pixel) << row << ", " << column;
      else ASSERT_TRUE(v > 1e36f && std::isfinite(v)) << row << ", " << column << ": " << v;
    }
  }
}

// Who forces an algorithm for finite values and asks for exact infinities at once is told so.
TEST(EdgeValues, ExactAndForcedContradict) {
  SessionOptions options;
  options.exact_nonfinite = true;
  options.algorithm = "winograd4";
  GraphBuilder b;
  const TensorId x = b.input({1, 8, 8, 8});
  auto session = Session::open(b.done(b.op("Conv", ConvOp{}, {x, b.weights({8, 8, 3, 3})})), make_reference_backend(), options);
  ASSERT_TRUE(session.ok());
  const auto got = (*session)->run({HostTensor::zeros(DType::f32, {1, 8, 8, 8})});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().message,
            "The algorithm 'winograd4' is right for finite values of moderate size alone; leave out nonfinite exact, or force "
            "another algorithm.");
}

}  // namespace
}  // namespace sparkle
