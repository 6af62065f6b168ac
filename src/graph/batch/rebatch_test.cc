// Models for one item given more: what keeps items apart passes, and what does not is named. Numbers:
// run/rebatched_models_test.
#include "graph/batch/rebatch.h"

#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

using Form = ReshapeOp::Form;

// The shape of the output for `rows` items, or the sentence.
std::string rebatched(GraphBuilder& b, TensorId output, int64_t rows = 4) {
  const auto many = rebatch(b.done(output), rows);
  if (!many.ok()) {
    EXPECT_EQ(many.error().reason, Reason::bad_usage) << many.error().message;
    return many.error().message;
  }
  EXPECT_EQ(many->tensor(many->inputs[0]).shape[0], rows);
  std::vector<InputBinding> bindings;
  for (const TensorId id : many->inputs) bindings.push_back({many->tensor(id).shape, std::nullopt});
  const auto again = sparkle::bind(*many, bindings);
  EXPECT_TRUE(again.ok()) << again.error().message;
  return many->tensor(many->outputs[0]).shape.to_string();
}

TEST(Rebatch, LayersKeepItemsApart) {
  GraphBuilder b;
  TensorId y = b.op("Conv", ConvOp{}, {b.input({1, 3, 9, 8}), b.weights({6, 3, 2, 2})});
  y = b.op("Concat", ConcatOp{1}, {y, y});
  y = b.op("Transpose", TransposeOp{{0, 2, 3, 1}}, {y});
  y = b.op("Reshape", ReshapeOp{}, {y, b.ints({1, -1, 12})});
  y = b.pointwise(PointwiseOp::add, {y, b.weights({1, 56, 1})});
  y = b.op("MatMul", MatMulOp{}, {y, b.weights({12, 5})});
  y = b.op("Softmax", SoftmaxOp{}, {y});
  EXPECT_EQ(rebatched(b, y), "4x56x5");
}

TEST(Rebatch, ShapesThatAreComputedAreThoseOfOneItem) {
  GraphBuilder b;
  const TensorId x = b.input({1, 4, 6});
  const TensorId shape = b.op("Shape", ShapeOp{}, {x});
  const TensorId first = b.op("Gather", GatherOp{0}, {shape, b.ints({0})});
  const TensorId target = b.op("Concat", ConcatOp{0}, {first, b.ints({-1})});
  EXPECT_EQ(rebatched(b, b.op("Reshape", ReshapeOp{}, {x, target})), "4x24");
}

TEST(Rebatch, ConstantsBesideItemsAreGivenToEach) {
  GraphBuilder b;
  const TensorId x = b.input({1, 2, 3});
  EXPECT_EQ(rebatched(b, b.op("Concat", ConcatOp{1}, {b.weights({1, 1, 3}), x}), 3), "3x3x3");
}

TEST(Rebatch, ViewsAndPartsOfOneItem) {
  {
    GraphBuilder b;
    EXPECT_EQ(rebatched(b, b.op("Flatten", ReshapeOp{Form::flatten, {1}, false, true}, {b.input({1, 2, 3})})), "4x6");
  }
  {
    GraphBuilder b;
    const TensorId whole =
        b.op("Slice", SliceOp{}, {b.input({1, 2, 3}), b.ints({0, 1}), b.ints({INT64_MAX, 3}), b.ints({0, 2})});
    EXPECT_EQ(rebatched(b, whole), "4x2x2");
  }
  {
    GraphBuilder b;
    EXPECT_EQ(rebatched(b, b.op("Expand", ExpandOp{}, {b.input({1, 1, 3}), b.ints({1, 5, 3})})), "4x5x3");
  }
}

TEST(Rebatch, WhatMixesItemsIsNamed) {
  const auto refused = [](const std::string& said, const char* why) {
    EXPECT_NE(said.find("cannot take 4 of them: node 'n"), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  {
    GraphBuilder b;
    refused(rebatched(b, b.op("Transpose", TransposeOp{{1, 0, 2}}, {b.input({1, 2, 3})})), "(Transpose) moves the axis");
  }
  {
    GraphBuilder b;
    refused(rebatched(b, b.op("Reshape", ReshapeOp{}, {b.input({1, 2, 3}), b.ints({2, 3})})), "(Reshape) puts the axis");
  }
  {
    GraphBuilder b;
    refused(rebatched(b, b.op("ReduceMean", ReduceOp{ReduceKind::mean, {0, 1}}, {b.input({1, 2, 3})})),
            "works along the first");
  }
  {
    GraphBuilder b;
    refused(rebatched(b, b.op("Softmax", SoftmaxOp{-3}, {b.input({1, 2, 3})})), "works along the first");
  }
  {
    GraphBuilder b;
    const TensorId x = b.input({1, 3});
    refused(rebatched(b, b.op("MatMul", MatMulOp{}, {b.op("Transpose", TransposeOp{}, {x}), x})), "(Transpose)");
  }
  {
    GraphBuilder b;
    const TensorId backwards =
        b.op("Slice", SliceOp{}, {b.input({1, 2}), b.ints({-1}), b.ints({-5}), b.ints({0}), b.ints({-1})});
    refused(rebatched(b, backwards), "works along the first");
  }
  {
    GraphBuilder b;
    refused(rebatched(b, b.pointwise(PointwiseOp::add, {b.input({1, 2}), b.weights({3, 1, 2})})), "moves the axis");
  }
  {
    GraphBuilder b;
    refused(rebatched(b, b.pointwise(PointwiseOp::add, {b.input({1, 2}), b.weights({3, 2})})), "repeats items");
  }
  {
    GraphBuilder b;
    refused(rebatched(b, b.op("Gather", GatherOp{0}, {b.input({1, 2}), b.ints({0})})), "works along the first");
  }
  {
    GraphBuilder b;
    refused(rebatched(b, b.many("DynamicQuantizeLinear", DynamicQuantizeOp{}, {b.input({1, 2})}, 3)[0]),
            "is not known to keep");
  }
  GraphBuilder b;
  const TensorId input = b.input({2, 3});
  EXPECT_NE(rebatched(b, b.pointwise(PointwiseOp::relu, {input})).find("does not begin with an axis of 1"), std::string::npos);
  GraphBuilder open;
  EXPECT_NE(rebatched(open, open.pointwise(PointwiseOp::relu, {open.input({1, -1})})).find("leaves sizes open"),
            std::string::npos);
  GraphBuilder apart;
  apart.input({1, 3});
  const TensorId constant = apart.op("Expand", ExpandOp{}, {apart.weights({1, 3}), apart.ints({1, 3})});
  EXPECT_NE(rebatched(apart, constant).find("does not depend on them"), std::string::npos);
}

}  // namespace
}  // namespace sparkle::testing
