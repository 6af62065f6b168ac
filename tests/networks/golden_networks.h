// Networks of golden plans that were made up, for what no published network here has, and types that published ones are given.
#pragma once

#include "base/half_floats.h"
#include "families/pool/pool.h"
#include "graph/evaluate/values.h"
#include "plan/plan_testing.h"

namespace sparkle {

using testing::GraphBuilder;

// Blocks that normalise and activate before the convolution (He et al. 2016, identity mappings): what no other network here has
// is a chain of element-wise operators that no sum of products can take in.
inline Graph preactivation() {
  testing::GraphBuilder b;
  b.graph.name = "preactivation";
  TensorId x = b.input({1, 64, 56, 56});
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  for (int block = 0; block < 3; ++block) {
    const TensorId normal = b.op("BatchNormalization", BatchNormalizationOp{},
                                 {x, b.weights({64}), b.weights({64}, 0.1f), b.weights({64}, 0.2f), b.weights({64}, 1.f)});
    const TensorId active = b.pointwise(PointwiseOp::relu, {normal});
    x = b.pointwise(PointwiseOp::add, {x, b.op("Conv", conv, {active, b.weights({64, 64, 3, 3}, -0.3f)})});
  }
  return b.done(x);
}

// The last block of ResNeXt-50's first stage and the first of its second (32 groups; Xie et al. 2017), batch normalisation
// folded.
inline Graph resnext() {
  testing::GraphBuilder b;
  b.graph.name = "resnext";
  TensorId x = b.input({1, 256, 56, 56});
  const auto conv = [&](TensorId from, int64_t c, int64_t k, int64_t size, int64_t groups, int64_t stride) {
    ConvOp op;
    op.groups = groups;
    op.strides = {stride, stride};
    op.pads_begin = op.pads_end = {size / 2, size / 2};
    return b.op("Conv", op, {from, b.weights({k, c / groups, size, size}), b.weights({k}, 0.1f)});
  };
  const auto relu = [&](TensorId from) { return b.pointwise(PointwiseOp::relu, {from}); };
  const auto block = [&](TensorId from, int64_t c, int64_t wide, int64_t k, int64_t stride) {
    const TensorId squeezed = relu(conv(from, c, wide, 1, 1, 1));
    const TensorId grouped = relu(conv(squeezed, wide, wide, 3, 32, stride));
    const TensorId skip = c == k ? from : conv(from, c, k, 1, 1, stride);
    return relu(b.pointwise(PointwiseOp::add, {conv(grouped, wide, k, 1, 1, 1), skip}));
  };
  x = block(x, 256, 128, 256, 1);
  return b.done(block(x, 256, 256, 512, 2));
}

// Of the layers that SSD adds behind its network (Liu et al. 2016): down to planes of a few pixels.
inline Graph ssd_extras() {
  testing::GraphBuilder b;
  b.graph.name = "ssd_extras";
  const auto layer = [&](TensorId from, int64_t c, int64_t k, int64_t size, int64_t stride, int64_t pad) {
    ConvOp op;
    op.strides = {stride, stride};
    op.pads_begin = op.pads_end = {pad, pad};
    return b.pointwise(PointwiseOp::relu, {b.op("Conv", op, {from, b.weights({k, c, size, size}), b.weights({k}, 0.1f)})});
  };
  const auto block = [&](TensorId from, int64_t c, int64_t squeezed, int64_t k) {
    return layer(layer(from, c, squeezed, 1, 1, 0), squeezed, k, 3, 2, 1);
  };
  const TensorId ten = b.input({1, 512, 10, 10});
  return b.done(block(block(ten, 512, 128, 256), 256, 128, 256));
}

// SRResNet's first layer, one of its blocks and an upsampling one (Ledig et al. 2017), batch normalisation folded: slopes per
// channel behind convolutions, one of them behind the shuffle of pixels.
inline Graph srresnet() {
  testing::GraphBuilder b;
  b.graph.name = "srresnet";
  const auto conv = [&](TensorId from, int64_t c, int64_t k, int64_t size) {
    ConvOp op;
    op.pads_begin = op.pads_end = {size / 2, size / 2};
    return b.op("Conv", op, {from, b.weights({k, c, size, size}), b.weights({k}, 0.1f)});
  };
  const auto prelu = [&](TensorId from) { return b.pointwise(PointwiseOp::prelu, {from, b.weights({64, 1, 1}, 0.2f)}); };
  const TensorId first = prelu(conv(b.input({1, 3, 96, 96}), 3, 64, 9));
  const TensorId block = conv(prelu(conv(first, 64, 64, 3)), 64, 64, 3);
  DepthToSpaceOp shuffle;
  shuffle.block = 2;
  const TensorId wide = b.op("DepthToSpace", shuffle, {conv(b.pointwise(PointwiseOp::add, {first, block}), 64, 256, 3)});
  return b.done(conv(prelu(wide), 64, 3, 9));
}

// A residual block whose tensors are all of a type of 16 bits: the sums that matrix units are for.
inline Graph narrow_block(const char* name, DType type, int64_t batch = 1) {
  testing::GraphBuilder b;
  b.graph.name = name;
  const TensorId x = b.input({batch, 64, 56, 56}, type);
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  const auto layer = [&](TensorId from) {
    HostTensor w = HostTensor::zeros(type, {64, 64, 3, 3});
    for (int64_t i = 0; i < w.elements(); ++i) w.data<uint16_t>()[i] = static_cast<uint16_t>(0x2c00 + i % 512);
    const TensorId weights = b.graph.add_constant("w" + std::to_string(b.graph.tensors.size()), w);
    return b.op("Conv", conv, {from, weights});
  };
  return b.done(b.pointwise(PointwiseOp::add, {layer(b.pointwise(PointwiseOp::relu, {layer(x)})), x}));
}

// The three convolutions of a bottleneck in 8 bits, the last one of weights that no L2 holds.
inline Graph quantized_layers(const char* name, int64_t groups) {
  testing::GraphBuilder b;
  b.graph.name = name;
  const auto constant = [&](DType type, const Dims& shape, int value) {
    const HostTensor t = HostTensor::zeros(type, shape);
    for (int64_t i = 0; i < t.size_bytes(); i += size_of(type)) t.bytes[i] = static_cast<std::byte>(value);
    return b.graph.add_constant("q" + std::to_string(b.graph.tensors.size()), t);
  };
  const auto layer = [&](TensorId from, int64_t c, int64_t k, int64_t size) {
    QuantizedConvOp op;
    op.conv.pads_begin = op.conv.pads_end = {size / 2, size / 2};
    op.conv.groups = groups;
    const TensorId w = constant(DType::i8, {k, c / groups, size, size}, 3), bias = constant(DType::i32, {k}, 1);
    const TensorId zero = constant(DType::u8, {}, 7), none = constant(DType::i8, {}, 0);
    return b.op("QLinearConv", op,
                {from, w, bias, zero, none, zero, b.floats({}, {0.5f}), b.floats({}, {0.25f}), b.floats({}, {8.f})});
  };
  if (groups > 1) return b.done(layer(b.input({1, groups, 56, 56}, DType::u8), groups, groups, 3));
  return b.done(layer(layer(layer(b.input({1, 256, 28, 28}, DType::u8), 256, 64, 1), 64, 512, 3), 512, 512, 3));
}
inline Graph bytes() { return quantized_layers("bytes", 1); }
inline Graph depthwise_bytes() { return quantized_layers("depthwise_bytes", 96); }

// What one token of a language model asks for, attention of one query over 4096 keys and the shares of 32000 words, and the
// mean of a whole plane: few results of much, for which GPUs share out the work on one.
inline Graph decoding() {
  testing::GraphBuilder b;
  b.graph.name = "decoding";
  const TensorId query = b.input({1, 32, 1, 128}), keys = b.input({1, 32, 4096, 128}), values = b.input({1, 32, 4096, 128});
  const TensorId words = b.input({1, 32000}), plane = b.input({1, 64, 112, 112});
  PoolOp mean;
  mean.kind = PoolKind::average;
  mean.kernel = {112, 112};
  b.graph.outputs = {b.op("Attention", AttentionOp{}, {query, keys, values}), b.op("Softmax", SoftmaxOp{}, {words}),
                     b.op("AveragePool", mean, {plane})};
  return b.graph;
}

// A layer's attention of 1024 places in heads of 64, as image and text models have it, in 16 bits and in 32.
inline Graph long_attention() {
  testing::GraphBuilder b;
  b.graph.name = "long_attention";
  for (const DType type : {DType::f16, DType::f32}) {
    const TensorId q = b.input({1, 16, 1024, 64}, type), k = b.input({1, 16, 1024, 64}, type);
    b.graph.outputs.push_back(b.op("Attention", AttentionOp{}, {q, k, b.input({1, 16, 1024, 64}, type)}));
  }
  return b.graph;
}

// A network as it comes from a file that holds it in 16 bits and casts it at load: constants in f32 with values of that type.
inline void cast_weights(Graph& graph, DType type) {
  for (GraphTensor& t : graph.tensors) {
    if (!t.constant || t.dtype != DType::f32) continue;
    HostTensor cast = HostTensor::uninitialized(DType::f32, t.shape);
    for (int64_t i = 0; i < cast.elements(); ++i) {
      const float value = t.constant->data<float>()[i];
      cast.data<float>()[i] =
          type == DType::f16 ? half_to_float(float_to_half(value)) : bfloat16_to_float(float_to_bfloat16(value));
    }
    t.constant = std::move(cast);
  }
}

// The network with tensors of f16 throughout, as converters of models write it.
inline void cast_tensors(Graph& graph) {
  for (GraphTensor& t : graph.tensors) {
    if (t.dtype != DType::f32) continue;
    t.dtype = DType::f16;
    if (!t.constant) continue;
    HostTensor cast = HostTensor::uninitialized(DType::f16, t.shape);
    for (int64_t i = 0; i < cast.elements(); ++i) cast.data<uint16_t>()[i] = float_to_half(t.constant->data<float>()[i]);
    t.constant = std::move(cast);
  }
}

// The convolutions of a LeNet for pictures of 86x86 pixels, ten thousand at a time, each between planes.
inline Graph few_channels() {
  testing::GraphBuilder b;
  b.graph.name = "few_channels";
  const TensorId first = b.input({10000, 1, 86, 86}), second = b.input({10000, 4, 40, 40});
  b.graph.outputs = {b.op("Conv", ConvOp{}, {first, b.weights({4, 1, 7, 7}, 0.1f)}),
                     b.op("Conv", ConvOp{}, {second, b.weights({16, 4, 7, 7}, 0.1f)})};
  return b.graph;
}

}  // namespace sparkle
