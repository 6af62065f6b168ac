// What decides shapes or attributes may come from any chain of constants: each operator of it is run when the graph is bound.
#include <gtest/gtest.h>

#include "backends/reference/reference_backend.h"
#include "graph/evaluate/evaluate.h"
#include "graph/test_graphs.h"
#include "graph/evaluate/values.h"
#include "run/session.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

HostTensor bytes(const Dims& shape, const std::vector<int64_t>& values) { return from_integers(DType::i8, shape, values); }

std::vector<double> run(const Graph& graph, const HostTensor& x) {
  auto session = Session::open(graph, make_reference_backend(), {});
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  if (!session.ok()) return {};
  auto got = (*session)->run({x});
  EXPECT_TRUE(got.ok()) << (got.ok() ? "" : got.error().message);
  return got.ok() ? as_doubles((*got)[0]) : std::vector<double>{};
}

TEST(EvaluateByPlan, PadTakesADequantizedValue) {
  GraphBuilder b;
  const TensorId x = b.input({2}), code = b.graph.add_constant("code", bytes({}, {-3}));
  const TensorId value = b.op("DequantizeLinear", DequantizeOp{}, {code, b.floats({}, {0.5f})});
  const Graph graph = b.done(b.op("Pad", PadOp{}, {x, b.ints({1, 1}), value}));
  EXPECT_EQ(run(graph, HostTensor::of(DType::f32, {2}, std::vector<float>{7, 8})), (std::vector<double>{-1.5, 7, 8, -1.5}));
}

TEST(EvaluateByPlan, ResizeTakesScalesThatAMatrixProductMakes) {
  GraphBuilder b;
  const TensorId x = b.input({1, 1, 2});
  const TensorId scales = b.op("MatMul", MatMulOp{}, {b.floats({3, 2}, {1, 0, 0.5f, 0.5f, 1, 1}), b.floats({2}, {1, 1})});
  ResizeOp resize;
  resize.params.coordinates = ResizeCoordinates::asymmetric;
  resize.params.nearest = ResizeNearest::floor;
  const Graph graph = b.done(b.op("Resize", resize, {x, kAbsent, scales}));
  EXPECT_EQ(run(graph, HostTensor::of(DType::f32, {1, 1, 2}, std::vector<float>{7, 8})), (std::vector<double>{7, 7, 8, 8}));
}

// Starts of a slice by ArgMax of constants, the shape of a Reshape by a cumulative sum.
TEST(EvaluateByPlan, BoundsAndShapesComeFromAnyOperator) {
  GraphBuilder b;
  const TensorId x = b.input({6});
  const TensorId start = b.op("ArgMax", ArgOp{}, {b.floats({4}, {0, 1, 9, 2})});
  const TensorId part = b.op("Slice", SliceOp{}, {x, start, b.ints({6}), b.ints({0})});
  const TensorId axis = b.graph.add_constant("axis", from_integers(DType::i64, {}, {0}));
  const TensorId shape = b.op("CumSum", CumSumOp{}, {b.ints({2, 0}), axis});
  ReshapeOp reshape;
  const TensorId square = b.op("Reshape", reshape, {part, shape});
  ReduceOp sum;
  sum.keep_dims = false;
  const Graph graph = b.done(b.op("ReduceSum", sum, {square, b.op("ArgMin", ArgOp{true}, {b.floats({2}, {3, 1})})}));
  EXPECT_EQ(run(graph, HostTensor::of(DType::f32, {6}, std::vector<float>{0, 1, 2, 3, 4, 5})), (std::vector<double>{5, 9}));
}

// What the data decides is refused as before: the values of inputs could ask for a whole network on plain loops.
TEST(EvaluateByPlan, WhatTheDataDecidesIsRefused) {
  GraphBuilder b;
  const TensorId x = b.input({2});
  const TensorId value = b.op("MatMul", MatMulOp{}, {x, b.floats({2}, {1, 1})});
  auto session = Session::open(b.done(b.op("Pad", PadOp{}, {x, b.ints({1, 1}), value})), make_reference_backend(), {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto got = (*session)->run({HostTensor::zeros(DType::f32, {2})});
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message.find("computed at run time"), std::string::npos) << got.error().message;
}

// Values of a few bytes may ask for hours: products of constants that are expanded from one element.
TEST(EvaluateByPlan, WhatTakesTooLongIsRefused) {
  const auto opened = [](int64_t size) -> std::string {
    GraphBuilder b;
    const TensorId x = b.input({6}), one = b.floats({1, 1}, {1});
    TensorId m = b.op("Expand", ExpandOp{}, {one, b.ints({size, size})});
    for (int i = 0; i < 3; ++i) m = b.op("MatMul", MatMulOp{}, {m, m});
    ReduceOp least;
    least.kind = ReduceKind::min;
    least.keep_dims = false;
    const TensorId shape =
        b.op("Cast", CastOp{DType::i64}, {b.op("Reshape", ReshapeOp{}, {b.op("Min", least, {m}), b.ints({1})})});
    const Graph graph = b.done(b.op("Expand", ExpandOp{}, {b.op("Reshape", ReshapeOp{}, {x, b.ints({6, 1})}), shape}));
    auto session = Session::open(graph, make_reference_backend(), {});
    return session.ok() ? "" : session.error().message;
  };
  EXPECT_EQ(opened(2), "");
  EXPECT_EQ(
      opened(2048),
      "Node 'n1' (MatMul): its value decides a shape or an attribute, and is too large or takes too long to compute before "
      "the run; store the value itself in the model.");
  EXPECT_NE(opened(int64_t{1} << 20).find("its value decides a shape or an attribute"), std::string::npos);
}

// One definition: folding reduces as the run does, in every kind and type, with axes and without.
TEST(EvaluateByPlan, FoldedReductionsEqualTheRun) {
  for (const ReduceKind kind :
       {ReduceKind::sum, ReduceKind::mean, ReduceKind::max, ReduceKind::min, ReduceKind::product, ReduceKind::l1,
        ReduceKind::l2, ReduceKind::sum_square, ReduceKind::log_sum, ReduceKind::log_sum_exp})
    for (const DType type : {DType::f32, DType::f16, DType::f64, DType::i32, DType::u64, DType::i8})
      for (const bool none : {false, true}) {
        const HostTensor x = from_doubles(type, {2, 3}, {1, 2, 3, 4, 5, 100});
        const auto graph_of = [&](bool constant) {
          GraphBuilder b;
          ReduceOp op;
          op.kind = kind;
          op.noop_if_no_axes = none;
          const TensorId from = constant ? b.graph.add_constant("x", x) : b.input({2, 3}, type);
          const TensorId copy = b.input({1}, type);  // so that there is an input
          b.graph.outputs = {b.op("Reduce", op, {from}), b.pointwise(PointwiseOp::identity, {copy})};
          return b.graph;
        };
        const HostTensor one = HostTensor::zeros(type, {1});
        std::vector<HostTensor> results;
        for (const bool constant : {true, false}) {
          auto session = Session::open(graph_of(constant), make_reference_backend(), {});
          ASSERT_TRUE(session.ok()) << session.error().message;
          std::vector<HostTensor> inputs;
          if (!constant) inputs.push_back(x);
          inputs.push_back(one);
          auto got = (*session)->run(inputs);
          ASSERT_TRUE(got.ok()) << got.error().message;
          results.push_back((*got)[0]);
        }
        EXPECT_EQ(as_doubles(results[0]), as_doubles(results[1])) << name_of(kind) << " " << name_of(type) << " " << none;
      }
}

}  // namespace
}  // namespace sparkle
