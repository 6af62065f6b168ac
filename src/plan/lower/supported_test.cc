// What is refused of a graph before any shape is known: operators, types, declared outputs; dead and folded parts are not.
#include "plan/lower/supported.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/test_graphs.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

std::vector<std::string> names(const std::vector<Refusal>& refusals) {
  std::vector<std::string> list;
  for (const Refusal& r : refusals) list.push_back(r.name);
  return list;
}

TEST(Supported, NamesEveryOperatorThatCannotRun) {
  GraphBuilder b;
  const TensorId x = b.input({-1, 4});
  const TensorId a = b.op("Foo", UnknownOp{"this operator is not supported"}, {x});
  const TensorId c = b.op("Bar", UnknownOp{"its attribute 'mode' is 'odd'"}, {a});
  b.op("Foo", UnknownOp{"this operator is not supported"}, {x});  // which nothing needs
  const Graph& g = b.done(b.op("Foo", UnknownOp{"this operator is not supported"}, {c}));
  EXPECT_EQ(names(unsupported(g)), (std::vector<std::string>{"n0", "n1", "n3"}));
  const Status status = check_supported(g, "m.onnx");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().reason, Reason::operator_not_served);
  EXPECT_EQ(status.error().message,
            "'m.onnx' has 3 nodes that cannot run here (Foo x2, Bar x1); export it without them (docs/operators.md lists what "
            "is supported).\n"
            "  Foo x2: this operator is not supported: 'n0', 'n3'\n"
            "  Bar x1: its attribute 'mode' is 'odd': 'n1'");
}

TEST(Supported, NamesForgeNoLines) {
  const Error error = refused("m.onnx", {{"a\n  Bar x9: why: 'b'", "Foo", Reason::operator_not_served, "not supported"},
                                         {"c", "Foo", Reason::operator_not_served, "not supported"}});
  EXPECT_EQ(std::count(error.message.begin(), error.message.end(), '\n'), 1) << error.message;
}

TEST(Supported, OneRefusalIsOneSentence) {
  GraphBuilder b;
  const TensorId x = b.input({4});
  const Status status = check_supported(b.done(b.op("Foo", UnknownOp{"this operator is not supported"}, {x})), "m.onnx");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "'m.onnx': node 'n0' (Foo): this operator is not supported; export the model without it (docs/operators.md lists "
            "what is supported).");
}

// A rank that a filter, a list or a constant tells, and a matrix that would be too large, whatever the sizes of x.
TEST(Supported, LimitsThatConstantsTell) {
  GraphBuilder b;
  const TensorId x = b.input({-1, 2, -1, -1, -1, -1});
  const TensorId conv = b.op("Conv", ConvOp{}, {x, b.floats({2, 2, 1, 1, 1, 1}, {1, 2, 3, 4})});
  PoolOp pool;
  pool.kernel = {2, 2, 2, 2};
  const TensorId pooled = b.op("MaxPool", pool, {conv});
  const TensorId image = b.op("Col2Im", ComposedOp{ColumnsToImageOp{}}, {pooled, b.ints({3, 3, 3, 3}), b.ints({2, 2, 2, 2})});
  const TensorId frames = b.op("STFT", ComposedOp{StftOp{}}, {image, b.ints({4000}), kAbsent, b.ints({8192})});
  const TensorId small = b.op("STFT", ComposedOp{StftOp{}}, {frames, b.ints({400}), kAbsent, b.ints({512})});
  PoolOp three;
  three.kernel = {2, 2, 2};
  const Graph& g = b.done(b.op("MaxPool", three, {small}));
  const std::vector<Refusal> refusals = unsupported(g);
  EXPECT_EQ(names(refusals), (std::vector<std::string>{"n0", "n1", "n2", "n3"}));
  for (const Refusal& r : refusals) EXPECT_EQ(r.reason, Reason::operator_not_served);
  EXPECT_EQ(refusals[0].why, "4 spatial dimensions are not supported, only 1 to 3");
  EXPECT_EQ(refusals[2].why, "its image has 4 axes; up to 3 are supported");
}

TEST(Supported, TypesAreKnownWithoutShapes) {
  GraphBuilder b;
  const TensorId x = b.input({-1, -1}, DType::i64), truth = b.input({-1, -1}, DType::boolean);
  const TensorId bad = b.op("Softmax", SoftmaxOp{-1}, {x});
  const TensorId worse = b.op("Softmax", SoftmaxOp{-1}, {b.op("Cast", CastOp{DType::u8}, {truth})});
  const TensorId good = b.op("Softmax", SoftmaxOp{-1}, {b.op("Cast", CastOp{DType::f32}, {x})});
  b.graph.outputs = {bad, worse, good};
  const auto refusals = unsupported(b.graph);
  ASSERT_EQ(refusals.size(), 2u);
  EXPECT_EQ(refusals[0].reason, Reason::type_not_served);
  EXPECT_NE(refusals[0].why.find("tensor 'x0' has type i64; this operator supports f32"), std::string::npos) << refusals[0].why;
  EXPECT_NE(refusals[1].why.find("u8"), std::string::npos) << refusals[1].why;
}

// Shapes are integers that many operators compute with before a run; whatever types the plan's kernels support, those are
// folded.
TEST(Supported, WhatIsFoldedMayHaveAnyType) {
  GraphBuilder b;
  const TensorId x = b.input({-1, 4});
  const TensorId shape = b.op("Shape", ShapeOp{}, {x});
  const TensorId odd = b.op("Sqrt", PointwiseNode{PointwiseOp::sqrt}, {shape});  // of i64, which no kernel supports
  EXPECT_TRUE(unsupported(b.done(b.op("Reshape", ReshapeOp{}, {x, odd}))).empty());
}

TEST(Supported, OutputsThatAreDeclaredWrongly) {
  GraphBuilder b;
  const TensorId x = b.input({-1, 4});
  const TensorId y = b.pointwise(PointwiseOp::relu, {x}), z = b.pointwise(PointwiseOp::less, {x, y});
  b.graph.outputs = {y, z};
  b.graph.declared = {{DType::bf16, false, {}}, {DType::f32, false, {}}};
  EXPECT_EQ(names(unsupported(b.graph)), (std::vector<std::string>{"n0_out", "n1_out"}));
  b.graph.declared = {{DType::f32, false, {}}, {DType::boolean, false, {}}};
  EXPECT_TRUE(unsupported(b.graph).empty());
  b.graph.declared = {{std::nullopt, false, {}}, {std::nullopt, false, {}}};
  EXPECT_TRUE(unsupported(b.graph).empty());
}

}  // namespace
}  // namespace sparkle
