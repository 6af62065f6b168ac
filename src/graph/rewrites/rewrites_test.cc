// Rewrites: text before and after; values are compared with hand-computed ones where constants decide.
#include <cmath>
#include <limits>

#include "graph/test_graphs.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

// Types of the remaining operators, in order.
std::string types(const Graph& g) {
  std::string s;
  for (const Op& op : g.ops) s += (s.empty() ? "" : " ") + op.type;
  return s;
}
std::string simplified(Graph& g) {
  const auto status = simplify(g);
  return status.ok() ? types(g) : status.error().message;
}
PointwiseOp only_pointwise(const Graph& g) {
  const auto* node = g.ops.size() == 1 ? std::get_if<PointwiseNode>(&g.ops[0].params) : nullptr;
  return node ? node->op : PointwiseOp::constant;
}

TEST(Rewrite, BatchNormalizationGoesIntoConv) {
  GraphBuilder b;
  const TensorId x = b.input({1, 2, 4, 4}), w = b.weights({2, 2, 1, 1});
  ConvOp conv;
  const TensorId y = b.op("Conv", conv, {x, w});
  const TensorId z =
      b.op("BatchNormalization", BatchNormalizationOp{0.5},
           {y, b.floats({2}, {2, 3}), b.floats({2}, {1, -1}), b.floats({2}, {0.5f, 4}), b.floats({2}, {3.5f, 0.5f})});
  Graph& g = b.done(z);
  const std::vector<double> before = as_doubles(*g.tensor(w).constant);
  EXPECT_EQ(to_text(g), "n0 Conv [1x2x4x4, 2x2x1x1] -> [*]\nn1 BatchNormalization [*, 2, 2, 2, 2] -> [*]\n");
  EXPECT_EQ(simplified(g), "Conv");
  EXPECT_EQ(to_text(g), "n0 Conv [1x2x4x4, 2x2x1x1, 2] -> [*]\n");
  EXPECT_EQ(g.tensor(g.outputs[0]).name, "n1_out");
  const std::vector<double> after = as_doubles(*g.tensor(g.ops[0].inputs[1]).constant);
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_FLOAT_EQ(static_cast<float>(after[i]), static_cast<float>(before[i] * (i < 2 ? 1 : 3)));
  const std::vector<double> bias = as_doubles(*g.tensor(g.ops[0].inputs[2]).constant);
  EXPECT_EQ(bias, (std::vector<double>{1 - 0.5, -1 - 3 * 4.0}));
}

TEST(Rewrite, PowersThatAreProductsOrRoots) {
  const struct {
    float exponent;
    const char* left;
  } cases[] = {{2, "mul relu"}, {0.5f, "sqrt relu"}, {3, "Pow relu"}};
  for (const auto& c : cases) {
    GraphBuilder b;
    const TensorId x = b.input({1, 2, 4, 4});
    const TensorId power = b.op("Pow", PointwiseNode{PointwiseOp::pow}, {x, b.floats({}, {c.exponent})});
    const TensorId y = b.op("relu", PointwiseNode{PointwiseOp::relu}, {power});
    auto bound = b.bound({y});
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    EXPECT_EQ(simplified(*bound), c.left);
  }
}

TEST(Rewrite, FactorsOfGroupedConvTransposeAndGemm) {
  GraphBuilder b;
  ConvOp conv;
  conv.transposed = true, conv.groups = 2;
  const TensorId w = b.weights({4, 3, 1, 1});  // 4 channels, 2 groups of 3 filters
  const TensorId y = b.op("ConvTranspose", conv, {b.input({1, 4, 5, 5}), w});
  Graph& g = b.done(b.op("Mul", PointwiseNode{PointwiseOp::mul}, {y, b.floats({6, 1, 1}, {1, 2, 3, 4, 5, 6})}));
  const std::vector<double> before = as_doubles(*g.tensor(w).constant);
  EXPECT_EQ(simplified(g), "ConvTranspose");
  const std::vector<double> after = as_doubles(*g.tensor(g.ops[0].inputs[1]).constant);
  for (int c = 0; c < 4; ++c)
    for (int k = 0; k < 3; ++k) EXPECT_EQ(after[c * 3 + k], before[c * 3 + k] * (c / 2 * 3 + k + 1));

  GraphBuilder gemm;
  MatMulOp op;
  op.gemm = true, op.transpose_b = true, op.beta = 2;
  const TensorId b2 = gemm.floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const TensorId product = gemm.op("Gemm", op, {gemm.input({1, 3}), b2, gemm.floats({2}, {1, 10})});
  Graph& h = gemm.done(gemm.op("Sub", PointwiseNode{PointwiseOp::sub}, {gemm.floats({2}, {7, 8}), product}));
  EXPECT_EQ(simplified(h), "Gemm");
  EXPECT_EQ(as_doubles(*h.tensor(h.ops[0].inputs[1]).constant), (std::vector<double>{-1, -2, -3, -4, -5, -6}));
  EXPECT_EQ(as_doubles(*h.tensor(h.ops[0].inputs[2]).constant), (std::vector<double>{7 - 2, 8 - 20}));
  EXPECT_EQ(std::get<MatMulOp>(h.ops[0].params).beta, 1);
}

TEST(Rewrite, AffineStaysWhereItMust) {
  GraphBuilder b;  // the product is used twice
  const TensorId y = b.op("Conv", ConvOp{}, {b.input({1, 2, 4, 4}), b.weights({2, 2, 1, 1})});
  const TensorId z = b.op("Mul", PointwiseNode{PointwiseOp::mul}, {y, b.floats({}, {2})});
  EXPECT_EQ(simplified(b.done(b.op("Add", PointwiseNode{PointwiseOp::add}, {y, z}))), "Conv Mul Add");
  GraphBuilder c;  // a factor per column, not per channel
  const TensorId v = c.op("Conv", ConvOp{}, {c.input({1, 4, 4, 4}), c.weights({4, 4, 1, 1})});
  EXPECT_EQ(simplified(c.done(c.op("Mul", PointwiseNode{PointwiseOp::mul}, {v, c.floats({4}, {1, 2, 3, 4})}))), "Conv Mul");
}

TEST(Rewrite, BatchNormalizationAloneBecomesFma) {
  GraphBuilder b;
  const TensorId x = b.input({1, 2, 4, 4});
  const TensorId y = b.op("BatchNormalization", BatchNormalizationOp{0},
                          {x, b.floats({2}, {2, 3}), b.floats({2}, {1, -1}), b.floats({2}, {0.5f, 4}), b.floats({2}, {4, 1})});
  auto g = b.bound({y});
  ASSERT_TRUE(g.ok());
  ASSERT_TRUE(simplify(*g).ok());
  EXPECT_EQ(to_text(*g), "n0 BatchNormalization [1x2x4x4, 2x1x1, 2x1x1] -> [1x2x4x4]\n");
  EXPECT_EQ(only_pointwise(*g), PointwiseOp::fma);
  EXPECT_EQ(as_doubles(*g->tensor(g->ops[0].inputs[2]).constant), (std::vector<double>{0.5, -13}));
}

TEST(Rewrite, PadGoesIntoTheWindow) {
  const auto pads = [](GraphBuilder& b) { return b.ints({0, 0, 1, 2, 0, 0, 3, 4}); };
  GraphBuilder b;
  ConvOp conv;
  conv.pads_begin = {1, 0}, conv.pads_end = {0, 0};
  const TensorId padded = b.op("Pad", PadOp{}, {b.input({1, 2, 8, 8}), pads(b)});
  Graph& g = b.done(b.op("Conv", conv, {padded, b.weights({2, 2, 3, 3})}));
  EXPECT_EQ(simplified(g), "Conv");
  EXPECT_EQ(std::get<ConvOp>(g.ops[0].params).pads_begin, (Dims{2, 2}));
  EXPECT_EQ(std::get<ConvOp>(g.ops[0].params).pads_end, (Dims{3, 4}));

  const auto pool = [](PoolKind kind, double value) {
    GraphBuilder c;
    PoolOp op;
    op.kind = kind, op.kernel = {3, 3};
    PadOp pad{PadMode::constant, {0, 0, 1, 1}, {0, 0, 1, 1}, value, true};
    return simplified(c.done(c.op("Pool", op, {c.op("Pad", pad, {c.input({1, 2, 8, 8})})})));
  };
  EXPECT_EQ(pool(PoolKind::average, 0), "Pool");
  EXPECT_EQ(pool(PoolKind::max, 0), "Pad Pool");
  EXPECT_EQ(pool(PoolKind::max, -std::numeric_limits<double>::infinity()), "Pool");
}

TEST(Rewrite, ActivationsAreRecognised) {
  using P = PointwiseOp;
  const auto check = [](P wanted, auto&& build) {
    GraphBuilder b;
    const TensorId x = b.input({2, 3});
    const auto c = [&](float v) { return b.floats({}, {v}); };
    Graph& g = b.done(build(b, x, c));
    ASSERT_TRUE(simplify(g).ok());
    EXPECT_EQ(only_pointwise(g), wanted) << name_of(wanted) << " in\n" << to_text(g);
    EXPECT_EQ(g.ops[0].inputs.size(), 1u);
  };
  check(P::silu, [](auto& b, TensorId x, auto) { return b.pointwise(P::mul, {b.pointwise(P::sigmoid, {x}), x}); });
  check(P::hard_swish,
        [](auto& b, TensorId x, auto) { return b.pointwise(P::mul, {x, b.pointwise(P::hard_sigmoid, {x}, 1.0f / 6, 0.5)}); });
  check(P::hard_swish, [](auto& b, TensorId x, auto c) {
    const TensorId clip = b.pointwise(P::clip, {b.pointwise(P::add, {x, c(3)}), c(0), c(6)});
    return b.pointwise(P::div, {b.pointwise(P::mul, {x, clip}), c(6)});
  });
  check(P::hard_swish, [](auto& b, TensorId x, auto c) {
    const TensorId clip = b.pointwise(P::clip, {b.pointwise(P::add, {x, c(3)}), c(0), c(6)});
    return b.pointwise(P::mul, {x, b.pointwise(P::div, {clip, c(6)})});
  });
  check(P::gelu, [](auto& b, TensorId x, auto c) {
    const TensorId erf = b.pointwise(P::erf, {b.pointwise(P::div, {x, c(1.41421356f)})});
    return b.pointwise(P::mul, {b.pointwise(P::mul, {x, b.pointwise(P::add, {erf, c(1)})}), c(0.5f)});
  });
  check(P::gelu, [](auto& b, TensorId x, auto c) {
    const TensorId erf = b.pointwise(P::erf, {b.pointwise(P::mul, {x, c(0.70710678f)})});
    return b.pointwise(P::mul, {b.pointwise(P::mul, {c(0.5f), x}), b.pointwise(P::add, {c(1), erf})});
  });
  check(P::gelu_tanh, [](auto& b, TensorId x, auto c) {
    const TensorId cube = b.pointwise(P::mul, {b.pointwise(P::pow, {x, c(3)}), c(0.044715f)});
    const TensorId t = b.pointwise(P::tanh, {b.pointwise(P::mul, {b.pointwise(P::add, {x, cube}), c(0.7978845608f)})});
    return b.pointwise(P::mul, {b.pointwise(P::mul, {x, c(0.5f)}), b.pointwise(P::add, {t, c(1)})});
  });
  check(P::mish, [](auto& b, TensorId x, auto) {
    return b.pointwise(P::mul, {x, b.pointwise(P::tanh, {b.pointwise(P::softplus, {x})})});
  });
}

// A constant that is a float32 next to the wanted one is as good in f32; of doubles it gives other results.
TEST(Rewrite, ActivationsOfDoublesStay) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3}, DType::f64);
  const TensorId gate = b.pointwise(PointwiseOp::hard_sigmoid, {x}, 1.0f / 6, 0.5);
  Graph& g = b.done(b.pointwise(PointwiseOp::mul, {x, gate}));
  ASSERT_TRUE(simplify(g).ok());
  EXPECT_EQ(g.ops.size(), 2u) << to_text(g);
}

TEST(Rewrite, NearMissesStay) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3}), other = b.input({2, 3});
  EXPECT_EQ(simplified(b.done(b.pointwise(PointwiseOp::mul, {other, b.pointwise(PointwiseOp::sigmoid, {x})}))), "sigmoid mul");
  GraphBuilder c;  // the tanh form with another constant
  const TensorId y = c.input({2, 3});
  const TensorId erf = c.pointwise(PointwiseOp::erf, {c.pointwise(PointwiseOp::div, {y, c.floats({}, {1.5f})})});
  const TensorId sum = c.pointwise(PointwiseOp::add, {erf, c.floats({}, {1})});
  EXPECT_EQ(simplified(c.done(c.pointwise(PointwiseOp::mul, {c.pointwise(PointwiseOp::mul, {y, sum}), c.floats({}, {0.5f})}))),
            "div erf add mul mul");
}

TEST(Rewrite, NoOpsChainsAndDeadOperators) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3, 4});
  TensorId y = b.pointwise(PointwiseOp::identity, {x});
  y = b.op("Transpose", TransposeOp{{1, 2, 0}}, {y});
  y = b.op("Transpose", TransposeOp{{2, 0, 1}}, {y});
  y = b.op("Concat", ConcatOp{0}, {y});
  y = b.op("Pad", PadOp{}, {y, b.ints({0, 0, 0, 0, 0, 0})});
  y = b.op("Reshape", ReshapeOp{}, {y, b.ints({6, 4})});
  y = b.op("Reshape", ReshapeOp{}, {y, b.ints({-1, 2})});
  b.pointwise(PointwiseOp::exp, {y});
  EXPECT_EQ(simplified(b.done(y)), "Reshape");
  EXPECT_EQ(to_text(b.graph), "n6 Reshape [2x3x4, 2] -> [*]\n");
  GraphBuilder c;  // a chain of names that callers see stays
  const TensorId in = c.input({2});
  EXPECT_EQ(simplified(c.done(c.pointwise(PointwiseOp::identity, {in}))), "identity");
}

TEST(Rewrite, ClipAndRelu) {
  GraphBuilder b;
  const TensorId x = b.input({2});
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(simplified(b.done(b.pointwise(PointwiseOp::clip, {x}, 0, infinity))), "clip");
  EXPECT_EQ(only_pointwise(b.graph), PointwiseOp::relu);
  GraphBuilder c;
  const TensorId clip = c.pointwise(PointwiseOp::clip, {c.input({2}), c.floats({}, {-1}), c.floats({}, {6})});
  EXPECT_EQ(simplified(c.done(c.pointwise(PointwiseOp::relu, {clip}))), "relu");
  const auto& node = std::get<PointwiseNode>(c.graph.ops[0].params);
  EXPECT_EQ(node.op, PointwiseOp::clip);
  EXPECT_EQ(node.a, 0);
  EXPECT_EQ(node.b, 6);
}

TEST(Rewrite, MatMulTakesItsBias) {
  GraphBuilder b;
  const TensorId y = b.op("MatMul", MatMulOp{}, {b.input({2, 5, 3}), b.weights({3, 4})});
  EXPECT_EQ(simplified(b.done(b.pointwise(PointwiseOp::add, {b.weights({4}), y}))), "MatMul");
  EXPECT_EQ(b.graph.ops[0].inputs.size(), 3u);
}

TEST(Rewrite, GroupNormalizationAsExported) {
  GraphBuilder b;
  const TensorId x = b.input({1, 4, 3, 3});
  TensorId y = b.op("Reshape", ReshapeOp{}, {x, b.ints({0, 2, -1})});
  y = b.op("InstanceNormalization", InstanceNormalizationOp{1e-3}, {y, b.floats({2}, {1, 1}), b.floats({2}, {0, 0})});
  y = b.op("Reshape", ReshapeOp{}, {y, b.ints({1, 4, 3, 3})});
  y = b.pointwise(PointwiseOp::mul, {y, b.weights({4, 1, 1})});
  auto g = b.bound({b.pointwise(PointwiseOp::add, {y, b.weights({4, 1, 1})})});
  ASSERT_TRUE(g.ok()) << g.error().message;
  EXPECT_EQ(simplified(*g), "GroupNormalization");
  EXPECT_EQ(std::get<GroupNormalizationOp>(g->ops[0].params).groups, 2);
}

TEST(Rewrite, WeightsStaySharedOverBinds) {
  GraphBuilder b;
  const TensorId y = b.op("Conv", ConvOp{}, {b.input({1, 2, 4, 4}), b.weights({2, 2, 1, 1})});
  Graph& g = b.done(b.pointwise(PointwiseOp::mul, {y, b.floats({}, {2})}));
  ASSERT_TRUE(simplify(g).ok());
  const void* bytes = g.tensor(g.ops[0].inputs[1]).constant->bytes.get();
  for (int64_t size : {4, 8}) {
    g.tensor(g.inputs[0]).shape = {1, 2, -1, -1};
    auto bound = sparkle::bind(g, {{{1, 2, size, size}, std::nullopt}});
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    ASSERT_TRUE(simplify(*bound).ok());
    EXPECT_EQ(bound->tensor(bound->ops[0].inputs[1]).constant->bytes.get(), bytes);
  }
}

TEST(Rewrite, AttentionAsExported) {
  for (const bool masked : {false, true}) {
    GraphBuilder b;
    const TensorId q = b.input({2, 3, 5, 4}), k = b.input({2, 3, 7, 4}), v = b.input({2, 3, 7, 6});
    const TensorId keys = b.op("Transpose", TransposeOp{{0, 1, 3, 2}}, {k});
    TensorId scores = b.op("MatMul", MatMulOp{}, {q, keys});
    scores = b.pointwise(PointwiseOp::div, {scores, b.floats({}, {2})});
    if (masked) scores = b.pointwise(PointwiseOp::add, {scores, b.input({5, 7})});
    const TensorId weights = b.op("Softmax", SoftmaxOp{}, {scores});
    auto g = b.bound({b.op("MatMul", MatMulOp{}, {weights, v})});
    ASSERT_TRUE(g.ok()) << g.error().message;
    EXPECT_EQ(simplified(*g), "Attention");
    const auto& attention = std::get<AttentionOp>(g->ops[0].params);
    EXPECT_EQ(*attention.scale, 0.5);
    // The transpositions of k have met and gone.
    EXPECT_EQ(g->ops[0].inputs[1], g->inputs[1]);
    EXPECT_EQ(g->ops[0].inputs.size(), masked ? 4u : 3u);
  }
}

TEST(Rewrite, AttentionWithChannelsBeforePixels) {
  GraphBuilder b;
  const TensorId q = b.input({1, 4, 6, 3}), k = b.input({1, 4, 3, 6}), v = b.input({1, 4, 5, 6});
  const TensorId weights = b.op("Softmax", SoftmaxOp{}, {b.op("MatMul", MatMulOp{}, {q, k})});
  const TensorId turned = b.op("Transpose", TransposeOp{{0, 1, 3, 2}}, {weights});
  auto g = b.bound({b.op("MatMul", MatMulOp{}, {v, turned})});
  ASSERT_TRUE(g.ok()) << g.error().message;
  EXPECT_EQ(simplified(*g), "Transpose Transpose Attention Transpose");
  EXPECT_EQ(to_text(*g),
            "n0 Transpose [1x4x3x6] -> [1x4x6x3]\nn1 Transpose [1x4x5x6] -> [1x4x6x5]\n"
            "n3 Attention [1x4x6x3, 1x4x6x3, 1x4x6x5] -> [1x4x6x5]\nn2 Transpose [1x4x6x5] -> [1x4x5x6]\n");
}

TEST(Rewrite, WeightsThatAreReadStayNoAttention) {
  GraphBuilder b;
  const TensorId q = b.input({2, 5, 4}), k = b.input({2, 4, 7}), v = b.input({2, 7, 6});
  const TensorId weights = b.op("Softmax", SoftmaxOp{}, {b.op("MatMul", MatMulOp{}, {q, k})});
  const TensorId y = b.op("MatMul", MatMulOp{}, {weights, v});
  auto both = b.bound({y, weights});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(simplified(*both), "MatMul Softmax MatMul");
  auto one = b.bound({y});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(simplified(*one), "Transpose Attention");
}

}  // namespace
}  // namespace sparkle
