#include "networks/network_builder.h"

#include <cmath>

#include "base/half_floats.h"

namespace sparkle {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

int64_t sum_of_pieces(uint64_t h) {
  return static_cast<int64_t>((h & 0xffff) + ((h >> 16) & 0xffff) + ((h >> 32) & 0xffff) + (h >> 48));
}

constexpr double kEpsilon = 1e-5;
constexpr int64_t kLarge = int64_t{1} << 20;  // elements

HostTensor rounded(const HostTensor& wide, DType type) {
  HostTensor narrow = HostTensor::uninitialized(type, wide.shape);
  for (int64_t i = 0; i < wide.elements(); ++i) {
    const float value = wide.data<float>()[i];
    narrow.data<uint16_t>()[i] = type == DType::f16 ? float_to_half(value) : float_to_bfloat16(value);
  }
  return narrow;
}
}  // namespace

float normal_at(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t key = mix(mix(seed + 0x9e3779b97f4a7c15u) + stream);
  const int64_t sum = sum_of_pieces(mix(key + 2 * index)) + sum_of_pieces(mix(key + 2 * index + 1));
  // Eight uniform numbers on 0..65535: mean 8 * 65535 / 2, variance 8 * 65536^2 / 12.
  constexpr float kScale = 1.0f / (65536.0f * 0.8164965809277260f);
  return static_cast<float>(sum - 4 * 65535) * kScale;
}

NetworkBuilder::NetworkBuilder(std::string name, uint64_t seed, bool batchnorm) : seed_(seed), batchnorm_(batchnorm) {
  graph_.name = std::move(name);
  graph_.opset = 21;
}

HostTensor NetworkBuilder::normal(const Dims& shape, double deviation, double mean) {
  if (!written_ && shape.product() >= kLarge) return HostTensor::uninitialized(DType::f32, shape);
  HostTensor tensor = HostTensor::zeros(DType::f32, shape);
  const uint64_t stream = ++streams_;
  const float factor = static_cast<float>(deviation), offset = static_cast<float>(mean);
  float* values = tensor.data<float>();
  for (int64_t i = 0; i < tensor.elements(); ++i)
    values[i] = offset + factor * normal_at(seed_, stream, static_cast<uint64_t>(i));
  return tensor;
}

TensorId NetworkBuilder::constant(const std::string& name, HostTensor value) {
  if (value.dtype == DType::f32 && stored_ != DType::f32)
    value = !written_ && value.elements() >= kLarge ? HostTensor::uninitialized(stored_, value.shape) : rounded(value, stored_);
  GraphTensor tensor;
  tensor.name = name;
  tensor.dtype = value.dtype;
  tensor.shape = value.shape;
  tensor.known = tensor.rank_known = true;
  tensor.constant = std::move(value);
  channels_.push_back(0);
  return graph_.add(std::move(tensor));
}

TensorId NetworkBuilder::op(const std::string& name, const std::string& type, OpParams params, std::vector<TensorId> inputs,
                            int64_t channels) {
  GraphTensor tensor;
  tensor.name = name;
  channels_.push_back(channels);
  const TensorId id = graph_.add(std::move(tensor));
  graph_.ops.push_back({name, type, std::move(params), std::move(inputs), {id}});
  return id;
}

TensorId NetworkBuilder::weights(const std::string& name, const Dims& shape, double deviation, double mean) {
  return constant(name, normal(shape, deviation, mean));
}

TensorId NetworkBuilder::integers(const std::string& name, const std::vector<int64_t>& values) {
  return constant(name, HostTensor::of(DType::i64, {static_cast<int64_t>(values.size())}, values));
}

TensorId NetworkBuilder::floats(const std::string& name, const std::vector<float>& values) {
  return constant(name, HostTensor::of(DType::f32, {static_cast<int64_t>(values.size())}, values));
}

TensorId NetworkBuilder::input(const std::string& name, const Dims& shape, DType dtype) {
  GraphTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.known = tensor.rank_known = true;
  channels_.push_back(shape[1]);
  const TensorId id = graph_.add(std::move(tensor));
  graph_.inputs.push_back(id);
  if (dtype == DType::f32 && stored_ != DType::f32) return op(name + ".cast", "Cast", CastOp{stored_}, {id}, shape[1]);
  return id;
}

void NetworkBuilder::output(TensorId x, const std::string& name, const Dims& shape) {
  if (stored_ != DType::f32) x = op(name + ".cast", "Cast", CastOp{DType::f32}, {x}, channels(x));
  GraphTensor& tensor = graph_.tensor(x);
  tensor.name = name;
  tensor.shape = shape;
  tensor.known = tensor.rank_known = true;
  graph_.outputs.push_back(x);
}

TensorId NetworkBuilder::activate(const std::string& name, TensorId x, LayerActivation activation) {
  switch (activation) {
    case LayerActivation::none: return x;
    case LayerActivation::relu: return op(name + ".relu", "Relu", PointwiseNode{PointwiseOp::relu}, {x}, channels(x));
    case LayerActivation::relu6: return op(name + ".relu6", "Clip", PointwiseNode{PointwiseOp::clip, 0, 6}, {x}, channels(x));
  }
  return x;
}

// With E[x^2] = q at the input, weights of variance 2 / fan_in give sums of variance 2q, of which a rectifier leaves q;
// where none follows, 1 / fan_in does.
TensorId NetworkBuilder::conv(const std::string& name, TensorId x, const ConvLayer& layer) {
  const int64_t k = layer.filters, c = channels(x) / layer.groups, r = layer.kernel;
  const double rectified = layer.activation == LayerActivation::none ? 1 : 2;
  HostTensor weights = normal({k, c, r, r}, layer.gain * std::sqrt(rectified / static_cast<double>(c * r * r)));
  HostTensor bias = normal({k}, 0.05);
  ConvOp params;
  params.kernel = {r, r};
  params.strides = {layer.stride, layer.stride};
  params.dilations = {1, 1};
  params.pads_begin = params.pads_end = {layer.pad, layer.pad};
  params.groups = layer.groups;
  if (!layer.normalised) {
    const TensorId w = constant(name + ".weight", std::move(weights)), b = constant(name + ".bias", std::move(bias));
    return activate(name, op(name, "Conv", params, {x, w, b}, k), layer.activation);
  }

  HostTensor scale = normal({k}, 0.1, 1), mean = normal({k}, 0.1), variance = normal({k}, 0.1, 1);
  if (batchnorm_) {
    const TensorId w = constant(name + ".weight", std::move(weights));
    const TensorId y = op(name, "Conv", params, {x, w}, k);
    const TensorId s = constant(name + ".bn.scale", std::move(scale)), b = constant(name + ".bn.bias", std::move(bias));
    const TensorId m = constant(name + ".bn.mean", std::move(mean)), v = constant(name + ".bn.variance", std::move(variance));
    return activate(name, op(name + ".bn", "BatchNormalization", BatchNormalizationOp{kEpsilon}, {y, s, b, m, v}, k),
                    layer.activation);
  }
  for (int64_t i = 0; i < k; ++i) {  // the same function with the normalisation folded in
    const double factor =
        static_cast<double>(scale.data<float>()[i]) / std::sqrt(static_cast<double>(variance.data<float>()[i]) + kEpsilon);
    for (int64_t j = i * c * r * r; j < (i + 1) * c * r * r; ++j)
      weights.data<float>()[j] = static_cast<float>(static_cast<double>(weights.data<float>()[j]) * factor);
    bias.data<float>()[i] =
        static_cast<float>(static_cast<double>(bias.data<float>()[i]) - static_cast<double>(mean.data<float>()[i]) * factor);
  }
  const TensorId w = constant(name + ".weight", std::move(weights)), b = constant(name + ".bias", std::move(bias));
  return activate(name, op(name, "Conv", params, {x, w, b}, k), layer.activation);
}

TensorId NetworkBuilder::up_conv(const std::string& name, TensorId x, int64_t filters) {
  const int64_t c = channels(x);
  const TensorId w = constant(name + ".weight", normal({c, filters, 2, 2}, std::sqrt(1 / static_cast<double>(c))));
  const TensorId b = constant(name + ".bias", normal({filters}, 0.05));
  ConvOp params;
  params.transposed = true;
  params.kernel = params.strides = {2, 2};
  params.dilations = {1, 1};
  params.pads_begin = params.pads_end = {0, 0};
  return op(name, "ConvTranspose", params, {x, w, b}, filters);
}

TensorId NetworkBuilder::max_pool(const std::string& name, TensorId x, int64_t kernel, int64_t stride, int64_t pad,
                                  bool ceil_mode) {
  PoolOp params;
  params.kernel = {kernel, kernel};
  params.strides = {stride, stride};
  params.pads_begin = params.pads_end = {pad, pad};
  params.ceil_mode = ceil_mode;
  return op(name, "MaxPool", params, {x}, channels(x));
}

TensorId NetworkBuilder::global_average(const std::string& name, TensorId x) {
  ReduceOp params;
  params.kind = ReduceKind::mean;
  params.all_spatial = true;
  return op(name, "GlobalAveragePool", params, {x}, channels(x));
}

TensorId NetworkBuilder::flatten(const std::string& name, TensorId x, int64_t features) {
  return op(name, "Flatten", ReshapeOp{ReshapeOp::Form::flatten, {1}, false, true}, {x}, features);
}

TensorId NetworkBuilder::dense(const std::string& name, TensorId x, int64_t outputs, bool relu) {
  const int64_t c = channels(x);
  const TensorId w = constant(name + ".weight", normal({outputs, c}, std::sqrt((relu ? 2 : 1) / static_cast<double>(c))));
  const TensorId b = constant(name + ".bias", normal({outputs}, 0.05));
  MatMulOp params;
  params.gemm = params.transpose_b = true;
  return activate(name, op(name, "Gemm", params, {x, w, b}, outputs), relu ? LayerActivation::relu : LayerActivation::none);
}

TensorId NetworkBuilder::add(const std::string& name, TensorId a, TensorId b, bool relu) {
  const TensorId sum = op(name, "Add", PointwiseNode{PointwiseOp::add}, {a, b}, channels(a));
  return activate(name, sum, relu ? LayerActivation::relu : LayerActivation::none);
}

TensorId NetworkBuilder::concat(const std::string& name, TensorId a, TensorId b) {
  return op(name, "Concat", ConcatOp{1}, {a, b}, channels(a) + channels(b));
}

TensorId NetworkBuilder::sigmoid(const std::string& name, TensorId x) {
  return op(name, "Sigmoid", PointwiseNode{PointwiseOp::sigmoid}, {x}, channels(x));
}

TensorId NetworkBuilder::silu(const std::string& name, TensorId x) {
  const TensorId gate = sigmoid(name + ".sigmoid", x);
  return op(name + ".silu", "Mul", PointwiseNode{PointwiseOp::mul}, {x, gate}, channels(x));
}

}  // namespace sparkle
