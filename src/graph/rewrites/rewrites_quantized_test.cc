// DequantizeLinear -> operator -> QuantizeLinear: what becomes one operator on integers and what does not.
#include <string>

#include "graph/test_graphs.h"

namespace sparkle {
namespace {
using testing::GraphBuilder;

struct QuantizedBuilder : GraphBuilder {
  TensorId constant(DType type, const Dims& shape, int value) {
    const HostTensor t = HostTensor::zeros(type, shape);
    for (int64_t i = 0; i < t.size_bytes(); i += size_of(type)) t.bytes[i] = static_cast<std::byte>(value);
    return graph.add_constant("q" + std::to_string(graph.tensors.size()), t);
  }
  TensorId dequantize(TensorId x, TensorId scale, TensorId zero, int64_t axis = 1) {
    return op("DequantizeLinear", DequantizeOp{axis, 0, {}}, {x, scale, zero});
  }
  TensorId quantize(TensorId x, TensorId scale, TensorId zero) { return op("QuantizeLinear", QuantizeOp{}, {x, scale, zero}); }
  TensorId bytes(const Dims& shape) {
    return dequantize(input(shape, DType::u8), floats({}, {0.5f}), constant(DType::u8, {}, 7));
  }
  TensorId zero() { return constant(DType::u8, {}, 9); }
  // A convolution of bytes whose bias has this scale.
  TensorId conv(float bias_scale) {
    const TensorId w = dequantize(constant(DType::i8, {4, 3, 1, 1}, 2), floats({4}, {0.25f, 0.25f, 0.25f, 0.25f}),
                                  constant(DType::i8, {4}, 0), 0);
    const TensorId bias =
        op("DequantizeLinear", DequantizeOp{0, 0, {}}, {constant(DType::i32, {4}, 1), floats({}, {bias_scale})});
    return op("Conv", ConvOp{}, {bytes({1, 3, 5, 5}), w, bias});
  }
};

std::string types(Graph& g) {
  EXPECT_TRUE(simplify(g).ok());
  std::string s;
  for (const Op& op : g.ops) s += (s.empty() ? "" : " ") + op.type;
  return s;
}

TEST(QuantizedRewrite, ConvolutionWithClipIsOneOperator) {
  QuantizedBuilder b;
  const TensorId y = b.pointwise(PointwiseOp::clip, {b.conv(0.125f)}, 0, 6);
  Graph& g = b.done(b.quantize(y, b.floats({}, {0.1f}), b.zero()));
  EXPECT_EQ(types(g), "QLinearConv");
  const auto& conv = std::get<QuantizedConvOp>(g.ops[0].params);
  ASSERT_TRUE(conv.clip.has_value());
  EXPECT_EQ(conv.clip->low, 9);
  EXPECT_EQ(conv.clip->high, 69);
  EXPECT_EQ(g.ops[0].inputs.size(), 9u);
}

TEST(QuantizedRewrite, BiasInOtherUnitsStaysAsItIs) {
  QuantizedBuilder b;
  Graph& g = b.done(b.quantize(b.conv(0.126f), b.floats({}, {0.1f}), b.zero()));
  EXPECT_EQ(types(g).find("QLinearConv"), std::string::npos);
}

TEST(QuantizedRewrite, ReadersOfTheRealResultKeepIt) {
  QuantizedBuilder b;
  const TensorId y = b.conv(0.125f);
  Graph& g = b.done(b.quantize(y, b.floats({}, {0.1f}), b.zero()));
  g.outputs.push_back(y);
  EXPECT_EQ(types(g).find("QLinearConv"), std::string::npos);
}

TEST(QuantizedRewrite, AdditionAndPoolAndMoves) {
  QuantizedBuilder b;
  const TensorId sum = b.op("Add", PointwiseNode{PointwiseOp::add}, {b.bytes({1, 3, 4, 4}), b.bytes({1, 3, 4, 4})});
  const TensorId scale = b.floats({}, {0.5f}), zero = b.constant(DType::u8, {}, 7);
  ReduceOp mean;
  mean.kind = ReduceKind::mean, mean.all_spatial = true;
  const TensorId pooled = b.op("GlobalAveragePool", mean, {b.dequantize(b.quantize(sum, scale, zero), scale, zero)});
  ReshapeOp flat;
  flat.form = ReshapeOp::Form::flatten, flat.target = {1};
  const TensorId moved = b.op("Flatten", flat, {b.dequantize(b.quantize(pooled, scale, zero), scale, zero)});
  Graph& g = b.done(b.quantize(moved, scale, zero));
  EXPECT_EQ(types(g), "com.microsoft.QLinearAdd com.microsoft.QLinearGlobalAveragePool Flatten");
}

// Zero points that a model leaves out are 0, in what the rewrites make as well.
TEST(QuantizedRewrite, ZeroPointsMayBeLeftOut) {
  QuantizedBuilder b;
  const TensorId scale = b.floats({}, {0.5f});
  ReduceOp mean;
  mean.kind = ReduceKind::mean, mean.all_spatial = true;
  const TensorId x = b.dequantize(b.input({1, 3, 4, 4}, DType::u8), scale, kAbsent);
  Graph& g = b.done(b.quantize(b.op("GlobalAveragePool", mean, {x}), scale, kAbsent));
  EXPECT_EQ(types(g), "com.microsoft.QLinearGlobalAveragePool");
  const auto bound = sparkle::bind(g, {{{1, 3, 4, 4}, std::nullopt}});
  EXPECT_TRUE(bound.ok()) << bound.error().message;
}

// The largest byte is the byte of the largest number, where one step is the same before and after.
TEST(QuantizedRewrite, MaxPoolBetweenEqualScalesStaysOnBytes) {
  const auto pooled = [](float scale_in, float scale_out, PoolKind kind, int outputs = 1) {
    QuantizedBuilder b;
    PoolOp pool;
    pool.kind = kind, pool.kernel = {2, 2}, pool.strides = {2, 2};
    const TensorId zero = b.constant(DType::u8, {}, 7);
    const TensorId x = b.dequantize(b.input({1, 3, 4, 4}, DType::u8), b.floats({}, {scale_in}), zero);
    const auto y = b.many(kind == PoolKind::max ? "MaxPool" : "AveragePool", pool, {x}, outputs);
    Graph& g = b.done(b.quantize(y[0], b.floats({}, {scale_out}), zero));
    if (outputs > 1) g.outputs.push_back(y[1]);
    return types(g);
  };
  EXPECT_EQ(pooled(0.5f, 0.5f, PoolKind::max), "MaxPool");
  const std::string apart = "DequantizeLinear MaxPool QuantizeLinear";
  EXPECT_EQ(pooled(0.5f, 0.25f, PoolKind::max), apart);
  EXPECT_EQ(pooled(-0.5f, -0.5f, PoolKind::max), apart);    // turns the order round
  EXPECT_EQ(pooled(1e-40f, 1e-40f, PoolKind::max), apart);  // below the normal numbers
  EXPECT_EQ(pooled(2e36f, 2e36f, PoolKind::max), apart);    // 255 steps overflow
  EXPECT_EQ(pooled(0.5f, 0.5f, PoolKind::max, 2), apart);   // positions are read
  EXPECT_EQ(pooled(0.5f, 0.5f, PoolKind::average), "DequantizeLinear AveragePool QuantizeLinear");
}

}  // namespace
}  // namespace sparkle
