// Folding and what bind() makes of values: every element type in its own domain.
#include <cmath>

#include "graph/evaluate/evaluate.h"
#include "graph/test_graphs.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

Op one(OpParams params) { return {"n", "Op", std::move(params), {}, {0}}; }

template <class T>
std::vector<double> run(OpParams params, std::vector<HostTensor> inputs) {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& t : inputs) pointers.push_back(&t);
  const auto values = evaluate(one(std::move(params)), pointers);
  if (!values.ok()) {
    ADD_FAILURE() << values.error().message;
    return {};
  }
  return as_doubles((*values)[0]);
}
HostTensor longs(Dims shape, std::vector<int64_t> v) { return HostTensor::of(DType::i64, shape, v); }
HostTensor floats(Dims shape, std::vector<float> v) { return HostTensor::of(DType::f32, shape, v); }
using V = std::vector<double>;

TEST(Evaluate, IntegersAreExact) {
  const auto product = evaluate(one(PointwiseNode{PointwiseOp::mul}), {});
  EXPECT_FALSE(product.ok());
  const HostTensor a = longs({2}, {(int64_t{1} << 53) + 1, -7}), b = longs({}, {3});
  const auto r = evaluate(one(PointwiseNode{PointwiseOp::mul}), {&a, &b});
  ASSERT_TRUE(r.ok());
  EXPECT_EQ((*r)[0].data<int64_t>()[0], 3 * ((int64_t{1} << 53) + 1));
  EXPECT_EQ(run<int>(PointwiseNode{PointwiseOp::div}, {a, b})[1], -2);
  EXPECT_EQ(run<int>(PointwiseNode{PointwiseOp::mod}, {a, b})[1], -1);
  const HostTensor zero = longs({}, {0}), lowest = longs({1}, {INT64_MIN}), minus = longs({}, {-1});
  const auto by_zero = evaluate(one(PointwiseNode{PointwiseOp::div}), {&a, &zero});
  ASSERT_FALSE(by_zero.ok());
  EXPECT_EQ(by_zero.error().message, "Node 'n' (Op): an integer constant is divided by zero.");
  EXPECT_EQ(run<int>(PointwiseNode{PointwiseOp::div}, {lowest, minus}), V{-0x1p63});
  const HostTensor bytes = HostTensor::of<uint8_t>(DType::u8, {2}, {250, 1});
  EXPECT_EQ(run<int>(PointwiseNode{PointwiseOp::add}, {bytes, bytes}), (V{244, 2}));
}

TEST(Evaluate, MovesAndShapes) {
  const HostTensor x = longs({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run<int>(TransposeOp{}, {x}), (V{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run<int>(SliceOp{}, {x, longs({2}, {-1, -1}), longs({2}, {-9, -9}), longs({2}, {0, 1}), longs({2}, {-1, -2})}),
            (V{6, 4, 3, 1}));
  EXPECT_EQ(run<int>(ConcatOp{1}, {x, x}), (V{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(run<int>(GatherOp{1}, {x, longs({2}, {-1, 0})}), (V{3, 1, 6, 4}));
  EXPECT_EQ(run<int>(ExpandOp{}, {longs({2, 1}, {7, 8}), longs({1}, {2})}), (V{7, 7, 8, 8}));
  EXPECT_EQ(run<int>(TileOp{}, {longs({1, 2}, {7, 8}), longs({2}, {2, 2})}), (V{7, 8, 7, 8, 7, 8, 7, 8}));
  EXPECT_EQ(run<int>(PadOp{}, {longs({3}, {1, 2, 3}), longs({2}, {-1, 1}), longs({}, {9})}), (V{2, 3, 9}));
  EXPECT_EQ(run<int>(ReshapeOp{}, {x, longs({1}, {-1})}), (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run<int>(RangeOp{}, {longs({}, {10}), longs({}, {3}), longs({}, {-3})}), (V{10, 7, 4}));
  EXPECT_EQ(run<int>(ReduceOp{ReduceKind::product, {0}, false}, {x}), (V{4, 10, 18}));
  EXPECT_EQ(run<int>(ReduceOp{ReduceKind::mean, {}, false}, {floats({4}, {1, 2, 3, 6})}), (V{3}));
  EXPECT_EQ(run<int>(ShapeOp{1, {}}, {x}), V{3});
  EXPECT_EQ(run<int>(ConstantOfShapeOp{DType::f32, 0.5}, {longs({2}, {1, 3})}), (V{0.5, 0.5, 0.5}));
  EXPECT_EQ(run<int>(CastOp{DType::i64}, {floats({3}, {-1.7f, 2.9f, 1e30f})}), (V{-1, 2, 0x1p63}));
  const HostTensor outside = longs({1}, {2});
  EXPECT_FALSE(evaluate(one(GatherOp{0}), {&x, &outside}).ok());
}

// An attribute in floats may hold what the tensor's type cannot: it is stored as kernels store it.
TEST(Evaluate, ValuesThatWholeNumbersCannotHold) {
  const auto padded = [](double value) {
    PadOp pad{PadMode::constant, {0}, {1}, value, true};
    return run<int>(pad, {longs({1}, {3})});
  };
  EXPECT_EQ(padded(NAN), (V{3, 0}));
  EXPECT_EQ(padded(INFINITY), (V{3, 0x1p63}));
  EXPECT_EQ(padded(-1e300), (V{3, -0x1p63}));
  EXPECT_EQ(run<int>(ConstantOfShapeOp{DType::u8, NAN}, {longs({1}, {1})}), V{0});
  EXPECT_EQ(run<int>(ConstantOfShapeOp{DType::u8, 1e10}, {longs({1}, {1})}), V{255});
}

TEST(Evaluate, HugeResultsStayUnfolded) {
  const HostTensor x = floats({1}, {1}), shape = longs({2}, {100000, 100000});
  const auto r = evaluate(one(ExpandOp{}), {&x, &shape});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().reason, Reason::operator_not_served);
  const HostTensor hostile = longs({2}, {INT64_MAX, INT64_MAX});
  EXPECT_EQ(evaluate(one(ConstantOfShapeOp{}), {&hostile}).error().reason, Reason::size_overflow);
}

TEST(Bind, ShapeChainsFold) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3, 4, 4});
  const TensorId shape = b.op("Shape", ShapeOp{}, {x});
  const TensorId n = b.op("Gather", GatherOp{0}, {shape, b.ints({0})});
  const TensorId target = b.op("Concat", ConcatOp{0}, {n, b.ints({-1})});
  const auto g = b.bound({b.op("Reshape", ReshapeOp{}, {x, target})});
  ASSERT_TRUE(g.ok()) << g.error().message;
  EXPECT_EQ(to_text(*g), "n3 Reshape [2x3x4x4] -> [2x48]\n");
  EXPECT_EQ(inputs_needed_by_value(b.graph), std::vector<bool>{false});
}

TEST(Bind, InputsByValue) {
  GraphBuilder b;
  const TensorId x = b.input({2, 6}), shape = b.input({2}, DType::i64);
  b.graph.outputs = {b.op("Reshape", ReshapeOp{}, {x, b.pointwise(PointwiseOp::neg, {shape})})};
  EXPECT_EQ(inputs_needed_by_value(b.graph), (std::vector<bool>{false, true}));
  const auto without = sparkle::bind(b.graph, {{{2, 6}, {}}, {{2}, {}}});
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().message,
            "Node 'n1' (Reshape): its shape 'n0_out' is computed at run time, but only a constant is supported.");
  const auto with = sparkle::bind(b.graph, {{{2, 6}, {}}, {{2}, longs({2}, {-3, -4})}});
  ASSERT_TRUE(with.ok()) << with.error().message;
  EXPECT_EQ(with->tensor(with->outputs[0]).shape, (Dims{3, 4}));
}

TEST(Bind, ErrorsNameTheirNodeOrInput) {
  GraphBuilder b;
  const TensorId x = b.input({2, -1});
  b.op("Unreached", UnknownOp{"x"}, {x});
  const TensorId y = b.op("NonMaxSuppression", UnknownOp{"this operator is not supported"}, {x});
  b.graph.outputs = {x};
  EXPECT_TRUE(sparkle::bind(b.graph, {{{2, 5}, {}}}).ok());
  b.graph.outputs = {y};
  EXPECT_EQ(sparkle::bind(b.graph, {{{2, 5}, {}}}).error().message,
            "Node 'n1' (NonMaxSuppression): this operator is not supported.");
  EXPECT_EQ(sparkle::bind(b.graph, {{{3, 5}, {}}}).error().message,
            "Input 'x0': the shape 3x5 was given, but the model declares 2x?.");
  EXPECT_EQ(sparkle::bind(b.graph, {{{2, int64_t{1} << 50}, {}}}).error().reason, Reason::size_overflow);
  EXPECT_EQ(sparkle::bind(b.graph, {{{2, -4}, {}}}).error().reason, Reason::size_overflow);
  EXPECT_EQ(sparkle::bind(b.graph, {}).error().message, "The model has 1 inputs, but 0 were given.");
}

TEST(Bind, ClipWithBoundsAtRunTime) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3}), low = b.input({});
  const auto g = b.bound({b.pointwise(PointwiseOp::clip, {x, low, b.floats({}, {4})})});
  ASSERT_TRUE(g.ok()) << g.error().message;
  ASSERT_EQ(g->ops.size(), 2u);
  EXPECT_EQ(std::get<PointwiseNode>(g->ops[0].params).op, PointwiseOp::max);
  EXPECT_EQ(std::get<PointwiseNode>(g->ops[1].params).op, PointwiseOp::min);
}

TEST(InferMath, MatMulGemmReduceSoftmaxPointwise) {
  GraphBuilder b;
  const TensorId m = b.input({2, 3, 4}), n = b.input({5, 1, 4, 6}), v = b.input({4}), k = b.input({3, 4});
  EXPECT_EQ(b.shape(b.op("MatMul", MatMulOp{}, {m, n})), "5x2x3x6");
  EXPECT_EQ(b.shape(b.op("MatMul", MatMulOp{}, {m, v})), "2x3");
  EXPECT_EQ(b.shape(b.op("MatMul", MatMulOp{}, {v, v})), "scalar");
  EXPECT_NE(b.shape(b.op("MatMul", MatMulOp{}, {m, m})).find("do not fit together"), std::string::npos);
  MatMulOp gemm;
  gemm.gemm = gemm.transpose_a = true;
  EXPECT_EQ(b.shape(b.op("Gemm", gemm, {k, b.input({3, 7}), b.input({7})})), "4x7");
  EXPECT_NE(b.shape(b.op("Gemm", gemm, {k, b.input({3, 7}), b.input({6})})).find("does not broadcast"), std::string::npos);
  EXPECT_EQ(b.shape(b.op("ReduceSum", ReduceOp{ReduceKind::sum, {}, false}, {m, b.ints({-1, 0})})), "3");
  EXPECT_EQ(b.shape(b.op("ReduceSum", ReduceOp{}, {m})), "1x1x1");
  EXPECT_EQ(b.shape(b.op("ReduceSum", ReduceOp{ReduceKind::sum, {}, true, true}, {m})), "2x3x4");
  ReduceOp global;
  global.all_spatial = true;
  EXPECT_EQ(b.shape(b.op("GlobalMaxPool", global, {n})), "5x1x1x1");
  EXPECT_EQ(b.shape(b.op("Softmax", SoftmaxOp{-1}, {m})), "2x3x4");
  EXPECT_NE(b.shape(b.op("Softmax", SoftmaxOp{3}, {m})).find("axis 3 does not exist"), std::string::npos);
  EXPECT_EQ(b.shape(b.pointwise(PointwiseOp::add, {m, b.input({3, 1})})), "2x3x4");
  EXPECT_NE(b.shape(b.pointwise(PointwiseOp::add,
                                {
                                    m,
                                    k,
                                }))
                .find("2x3x4"),
            std::string::npos);
  EXPECT_NE(b.shape(b.pointwise(PointwiseOp::add, {m, b.input({5})})).find("does not broadcast with 'x0' of shape 2x3x4"),
            std::string::npos);
  EXPECT_NE(b.shape(b.pointwise(PointwiseOp::add, {m, b.input({4}, DType::i64)})).find("(f32) and 'x"), std::string::npos);
  EXPECT_EQ(b.shape(b.pointwise(PointwiseOp::select, {b.input({3, 1}, DType::boolean), v, k})), "3x4");
}

TEST(InferNormalize, ParametersAreChecked) {
  GraphBuilder b;
  const TensorId x = b.input({2, 4, 5}), c = b.input({4}), wrong = b.input({3});
  EXPECT_EQ(b.shape(b.op("BatchNormalization", BatchNormalizationOp{}, {x, c, c, c, c})), "2x4x5");
  EXPECT_NE(b.shape(b.op("BatchNormalization", BatchNormalizationOp{}, {x, c, wrong, c, c})).find("each of the 4 channels"),
            std::string::npos);
  EXPECT_EQ(b.shape(b.op("InstanceNormalization", InstanceNormalizationOp{}, {x, c, c})), "2x4x5");
  EXPECT_EQ(b.shape(b.op("LayerNormalization", LayerNormalizationOp{-2}, {x, b.input({4, 5})})), "2x4x5");
  EXPECT_NE(b.shape(b.op("LayerNormalization", LayerNormalizationOp{}, {x, c})).find("does not broadcast"), std::string::npos);
  EXPECT_EQ(b.shape(b.op("GroupNormalization", GroupNormalizationOp{2}, {x, c, c})), "2x4x5");
  EXPECT_NE(b.shape(b.op("GroupNormalization", GroupNormalizationOp{3}, {x, c, c})).find("do not divide into 3"),
            std::string::npos);
  EXPECT_EQ(b.shape(b.op("LRN", LocalResponseOp{3}, {x})), "2x4x5");
}

TEST(Evaluate, FilledInPieces) {
  GraphBuilder b;
  const auto value = evaluate(Op{"n", "ConstantOfShape", ConstantOfShapeOp{DType::f32, 1.5}, {}, {0}},
                              {&*b.graph.tensor(b.ints({3, 7, 5})).constant});
  ASSERT_TRUE(value.ok()) << value.error().message;
  for (int64_t i = 0; i < 105; ++i) EXPECT_EQ((*value)[0].data<float>()[i], 1.5f) << i;
}

// A few operators may not make more constants than the machine has memory: what is over the budget is left to the run.
TEST(Evaluate, FoldedConstantsAreBoundedInSum) {
  GraphBuilder b;
  const auto result_of = [&](const Dims& shape) {
    const TensorId y = b.op("ConstantOfShape", ConstantOfShapeOp{}, {b.ints({})});
    b.graph.tensor(y).shape = shape;
    return b.graph.ops.back();
  };
  const Op large = result_of({FoldingLimit{}.bytes / 8}), small = result_of({4});
  FoldingLimit left;
  const auto folded = [&](const Op& op) {
    const FoldingCost cost = folding_cost(b.graph, op);
    const bool worth = worth_folding(op, cost, left);
    if (worth) take(cost, left);
    return worth;
  };
  EXPECT_TRUE(folded(large));
  EXPECT_TRUE(folded(large));
  EXPECT_FALSE(folded(large));
  EXPECT_TRUE(folded(small));
}

// The same for a whole graph, before and when it is bound: neither its constants nor the time for them grow without end.
TEST(Evaluate, FoldingAGraphIsBoundedInSum) {
  const auto left_of = [](GraphBuilder& b, const FoldingLimit& limit, bool bind) {
    b.graph.folding = limit;
    Graph g = b.graph;
    if (bind) g = *b.bound(b.graph.outputs);
    else EXPECT_TRUE(simplify(g).ok());
    return g.ops.size();
  };
  for (const bool bind : {false, true}) {
    GraphBuilder large, slow;
    for (int i = 0; i < 5; ++i)
      large.graph.outputs.push_back(large.op("Expand", ExpandOp{}, {large.floats({1}, {1}), large.ints({65536})}));
    EXPECT_EQ(left_of(large, {3 * 262144, 1 << 30}, bind), 2u);
    ReduceOp sum;
    sum.keep_dims = false;
    const TensorId x = slow.floats({65536}, std::vector<float>(65536, 1));
    for (int i = 0; i < 5; ++i) slow.graph.outputs.push_back(slow.op("ReduceSum", sum, {x}));
    EXPECT_EQ(left_of(slow, {1 << 30, 3 * 65537 + 100}, bind), 2u);
    // What stays is no cost: operators that are not evaluated leave the limit to those that are.
    GraphBuilder kept;
    const TensorId m = kept.floats({64, 64}, std::vector<float>(4096, 1));
    for (int i = 0; i < 5; ++i) kept.graph.outputs.push_back(kept.op("MatMul", MatMulOp{}, {m, m}));
    kept.graph.outputs.push_back(kept.pointwise(PointwiseOp::add, {m, m}));
    EXPECT_EQ(left_of(kept, {16384, 3 * 4096}, bind), 5u);
  }
}

}  // namespace
}  // namespace sparkle
