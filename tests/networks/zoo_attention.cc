// An encoder of text in small, after Vaswani et al. 2017, with the normalisation before each part: an embedding looked up by
// token, attention of several heads, two dense layers with GELU, the mean over the tokens classified.
#include <cmath>

#include "networks/zoo_networks.h"

namespace sparkle {
namespace {

constexpr int64_t kWords = 50, kTokens = 12, kWidth = 32, kHeads = 4, kClasses = 5;

TensorId dense(NetworkBuilder& net, const std::string& name, TensorId x, int64_t from, int64_t to, double gain = 1) {
  const TensorId w = net.weights(name + ".weight", {from, to}, gain / std::sqrt(static_cast<double>(from)));
  const TensorId product = net.op(name, "MatMul", MatMulOp{}, {x, w}, to);
  return net.op(name + ".add", "Add", PointwiseNode{PointwiseOp::add}, {product, net.weights(name + ".bias", {to}, 0.05)}, to);
}

TensorId normalised(NetworkBuilder& net, const std::string& name, TensorId x) {
  const TensorId scale = net.weights(name + ".scale", {kWidth}, 0.1, 1), bias = net.weights(name + ".bias", {kWidth}, 0.1);
  return net.op(name, "LayerNormalization", LayerNormalizationOp{}, {x, scale, bias}, kWidth);
}

// [batch, tokens, width] -> [batch, heads, tokens, width / heads], or with the last two axes the other way round.
TensorId heads(NetworkBuilder& net, const std::string& name, TensorId x, const Dims& order) {
  const TensorId shape = net.integers(name + ".shape", {0, kTokens, kHeads, kWidth / kHeads});
  const TensorId split = net.op(name + ".split", "Reshape", ReshapeOp{}, {x, shape}, kWidth);
  return net.op(name + ".turn", "Transpose", TransposeOp{order}, {split}, kWidth);
}

TensorId attention(NetworkBuilder& net, TensorId x) {
  const TensorId q = heads(net, "query", dense(net, "query", x, kWidth, kWidth), {0, 2, 1, 3});
  const TensorId k = heads(net, "key", dense(net, "key", x, kWidth, kWidth), {0, 2, 3, 1});
  const TensorId v = heads(net, "value", dense(net, "value", x, kWidth, kWidth), {0, 2, 1, 3});
  const TensorId scores = net.op("scores", "MatMul", MatMulOp{}, {q, k}, kTokens);
  const TensorId root = net.floats("scale", {1 / std::sqrt(static_cast<float>(kWidth / kHeads))});
  const TensorId scaled = net.op("scaled", "Mul", PointwiseNode{PointwiseOp::mul}, {scores, root}, kTokens);
  const TensorId shares = net.op("softmax", "Softmax", SoftmaxOp{}, {scaled}, kTokens);
  const TensorId mixed = net.op("mixed", "MatMul", MatMulOp{}, {shares, v}, kWidth / kHeads);
  const TensorId turned = net.op("mixed.turn", "Transpose", TransposeOp{{0, 2, 1, 3}}, {mixed}, kWidth);
  const TensorId joined =
      net.op("mixed.join", "Reshape", ReshapeOp{}, {turned, net.integers("mixed.shape", {0, kTokens, kWidth})}, kWidth);
  return dense(net, "project", joined, kWidth, kWidth, 0.5);
}

TensorId feed_forward(NetworkBuilder& net, TensorId x) {
  const TensorId wide = dense(net, "wide", x, kWidth, 2 * kWidth);
  const TensorId active = net.op("gelu", "Gelu", PointwiseNode{PointwiseOp::gelu}, {wide}, 2 * kWidth);
  return dense(net, "narrow", active, 2 * kWidth, kWidth, 0.5);
}

}  // namespace

void tiny_attention(NetworkBuilder& net, int64_t batch) {
  const TensorId tokens = net.input("tokens", {batch, kTokens}, DType::i64);
  const TensorId table = net.weights("words", {kWords, kWidth}, 1);
  TensorId x = net.op("embedding", "Gather", GatherOp{0}, {table, tokens}, kWidth);
  x = net.add("positions", x, net.weights("positions.table", {kTokens, kWidth}, 0.3), false);
  x = net.add("residual1", x, attention(net, normalised(net, "norm1", x)), false);
  x = net.add("residual2", x, feed_forward(net, normalised(net, "norm2", x)), false);
  ReduceOp mean;
  mean.kind = ReduceKind::mean;
  mean.keep_dims = false;
  x = net.op("mean", "ReduceMean", mean, {normalised(net, "norm3", x), net.integers("mean.axes", {1})}, kWidth);
  x = net.dense("classes", x, kClasses, false);
  net.output(net.op("shares", "Softmax", SoftmaxOp{}, {x}, kClasses), "shares", {batch, kClasses});
}

}  // namespace sparkle
