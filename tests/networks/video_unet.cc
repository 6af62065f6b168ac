// The network of a public stress test for GPUs: four convolutions a block, attention of 16 heads behind three levels and in the
// middle, BatchNormalization as at inference. Training leaves the sums of each layer with like deviations; random weights must
// be drawn so. Here that is 4, where SiLU is nearly a rectifier: E[silu(x)^2] = 7.77 for normal x of deviation 4, so weights of
// variance 0.8 * 16 / (7.77 n) give four fifths of a sum's variance, and the shift of the normalisation the rest. Errors of the
// variance then shrink to 0.83 from layer to layer, and so do squares of the differences between two inputs: of 90 convolutions
// 26 lie on the shortest way. With nine tenths the network makes differences larger, and cannot be fed its own outputs.
#include "networks/video_unet.h"

#include <cmath>

#include "networks/network_builder.h"

namespace sparkle {
namespace {

constexpr int64_t kHeads = 16, kFrame = 3;
constexpr double kVariance = 16, kWeighted = 0.8;  // of sums, and the share of it that weights make
constexpr double kSiluSquare = 7.77, kGeluSquare = 0.425;
constexpr double kBranch = 0.5;  // deviation of what attention adds, of what it is added to
constexpr double kEpsilon = 1e-5;

struct Builder {
  NetworkBuilder net;
  const VideoUnetOptions& options;

  // 3x3, normalised, SiLU. `square`: E[x^2] of what it reads.
  TensorId conv(const std::string& name, TensorId x, int64_t filters, double square) {
    const int64_t c = net.channels(x), taps = c * 9;
    HostTensor weights =
        net.normal({filters, c, 3, 3}, std::sqrt(kWeighted * kVariance / (square * static_cast<double>(taps))));
    HostTensor bias = net.normal({filters}, 0.05);
    HostTensor scale = net.normal({filters}, 0.1, 1), shift = net.normal({filters}, std::sqrt((1 - kWeighted) * kVariance));
    HostTensor mean = net.normal({filters}, 0.1), variance = net.normal({filters}, 0.1, 1);
    if (!options.batchnorm && options.weights) fold(scale, shift, mean, variance, weights, bias);
    ConvOp params;
    params.kernel = {3, 3};
    params.strides = params.dilations = params.pads_begin = params.pads_end = {1, 1};
    params.groups = 1;
    const auto constant = [&](const char* what, HostTensor value) { return net.constant(name + what, std::move(value)); };
    const TensorId w = constant(".weight", std::move(weights)), b = constant(".bias", std::move(bias));
    TensorId y = net.op(name, "Conv", params, {x, w, b}, filters);
    if (options.batchnorm) {
      const TensorId s = constant(".bn.scale", std::move(scale)), t = constant(".bn.bias", std::move(shift));
      const TensorId m = constant(".bn.mean", std::move(mean)), v = constant(".bn.variance", std::move(variance));
      y = net.op(name + ".bn", "BatchNormalization", BatchNormalizationOp{kEpsilon}, {y, s, t, m, v}, filters);
    }
    return net.silu(name, y);
  }

  static void fold(const HostTensor& scale, const HostTensor& shift, const HostTensor& mean, const HostTensor& variance,
                   HostTensor& weights, HostTensor& bias) {
    const int64_t filters = bias.elements(), taps = weights.elements() / filters;
    const auto value = [](const HostTensor& t, int64_t i) { return static_cast<double>(t.data<float>()[i]); };
    for (int64_t k = 0; k < filters; ++k) {
      const double factor = value(scale, k) / std::sqrt(value(variance, k) + kEpsilon);
      for (int64_t i = k * taps; i < (k + 1) * taps; ++i)
        weights.data<float>()[i] = static_cast<float>(value(weights, i) * factor);
      bias.data<float>()[k] = static_cast<float>((value(bias, k) - value(mean, k)) * factor + value(shift, k));
    }
  }

  TensorId block(const std::string& name, TensorId x, int64_t filters, double square = kSiluSquare) {
    for (int i = 0; i < 4; ++i) x = conv(name + ".conv" + std::to_string(i), x, filters, i == 0 ? square : kSiluSquare);
    return x;
  }

  TensorId dense(const std::string& name, TensorId x, int64_t outputs, double gain) {
    const int64_t c = net.channels(x);
    const TensorId w = net.weights(name + ".weight", {c, outputs}, gain / std::sqrt(static_cast<double>(c)));
    const TensorId product = net.op(name, "MatMul", MatMulOp{}, {x, w}, outputs);
    return net.add(name + ".add", product, net.weights(name + ".bias", {outputs}, 0.05), false);
  }

  TensorId normalised(const std::string& name, TensorId x) {
    const int64_t c = net.channels(x);
    const TensorId scale = net.weights(name + ".scale", {c}, 0.1, 1), bias = net.weights(name + ".bias", {c}, 0.1);
    return net.op(name, "LayerNormalization", LayerNormalizationOp{}, {x, scale, bias}, c);
  }

  TensorId reshape(const std::string& name, TensorId x, const std::vector<int64_t>& shape) {
    return net.op(name, "Reshape", ReshapeOp{}, {x, net.integers(name + ".shape", shape)}, net.channels(x));
  }
  TensorId transpose(const std::string& name, TensorId x, const Dims& order) {
    return net.op(name, "Transpose", TransposeOp{order}, {x}, net.channels(x));
  }

  // Self-attention over the pixels of a map, then two dense layers; both beside what they read.
  TensorId attention(const std::string& name, TensorId x, int64_t side) {
    const int64_t c = net.channels(x), pixels = side * side, depth = c / kHeads;
    TensorId tokens = transpose(name + ".tokens", reshape(name + ".flat", x, {options.batch, c, pixels}), {0, 2, 1});
    const TensorId before = normalised(name + ".norm1", tokens);
    const auto head = [&](const std::string& part, const Dims& order) {
      const TensorId y = dense(name + "." + part, before, c, 1);
      return transpose(name + "." + part + ".turn",
                       reshape(name + "." + part + ".split", y, {options.batch, pixels, kHeads, depth}), order);
    };
    const TensorId q = head("query", {0, 2, 1, 3}), k = head("key", {0, 2, 3, 1}), v = head("value", {0, 2, 1, 3});
    const TensorId scores = net.op(name + ".scores", "MatMul", MatMulOp{}, {q, k}, c);
    const TensorId root = net.floats(name + ".root", {static_cast<float>(1 / std::sqrt(static_cast<double>(depth)))});
    const TensorId scaled = net.op(name + ".scaled", "Mul", PointwiseNode{PointwiseOp::mul}, {scores, root}, c);
    const TensorId shares = net.op(name + ".softmax", "Softmax", SoftmaxOp{}, {scaled}, c);
    const TensorId mixed = net.op(name + ".mixed", "MatMul", MatMulOp{}, {shares, v}, c);
    const TensorId joined =
        reshape(name + ".join", transpose(name + ".mixed.turn", mixed, {0, 2, 1, 3}), {options.batch, pixels, c});
    tokens = net.add(name + ".residual1", tokens, dense(name + ".project", joined, c, kBranch * std::sqrt(kSiluSquare)), false);
    const TensorId wide = dense(name + ".wide", normalised(name + ".norm2", tokens), 4 * c, 1);
    const TensorId active = net.op(name + ".gelu", "Gelu", PointwiseNode{PointwiseOp::gelu}, {wide}, 4 * c);
    tokens = net.add(name + ".residual2", tokens,
                     dense(name + ".narrow", active, c, kBranch * std::sqrt(kSiluSquare / kGeluSquare)), false);
    return reshape(name + ".map", transpose(name + ".channels", tokens, {0, 2, 1}), {options.batch, c, side, side});
  }

  TensorId up(const std::string& name, TensorId x) {
    ResizeOp resize;
    resize.params.mode = ResizeMode::linear;
    resize.params.scales = {1, 1, 2, 2};
    return net.op(name, "Resize", resize, {x}, net.channels(x));
  }

  TensorId unet(const std::string& name, TensorId x, int64_t base) {
    std::vector<TensorId> skips;
    int64_t side = options.size;
    for (int level = 0; level < 4; ++level) {
      const std::string at = name + ".down" + std::to_string(level);
      x = block(at, x, base << level, level == 0 ? 1 : kSiluSquare);
      if (level > 0) x = attention(at + ".attention", x, side);
      skips.push_back(x);
      x = net.max_pool(at + ".pool", x, 2, 2, 0);
      side /= 2;
    }
    x = block(name + ".middle0", x, base * 16);
    x = attention(name + ".middle1", x, side);
    x = block(name + ".middle2", x, base * 8);
    for (int level = 3; level >= 0; --level) {
      const std::string at = name + ".up" + std::to_string(level);
      x = net.concat(at + ".concat", up(at + ".resize", x), skips[static_cast<size_t>(level)]);
      x = block(at, x, level > 0 ? base << (level - 1) : base);
    }
    const int64_t c = net.channels(x);
    const TensorId w =
        net.weights(name + ".output.weight", {kFrame, c, 1, 1}, 1 / std::sqrt(kSiluSquare * static_cast<double>(c)));
    const TensorId b = net.weights(name + ".output.bias", {kFrame}, 0.05);
    ConvOp params;
    params.kernel = params.strides = params.dilations = {1, 1};
    params.pads_begin = params.pads_end = {0, 0};
    params.groups = 1;
    return net.op(name + ".output", "Conv", params, {x, w, b}, kFrame);
  }
};

}  // namespace

Result<Graph> video_unet(const VideoUnetOptions& options) {
  if (options.batch < 1 || options.base < 16 || options.base % 16 != 0 || options.size < 16 || options.size % 16 != 0)
    return Error{Reason::bad_usage, "The network wants a batch of 1 or more, and a base and a size that are multiples of 16."};
  if (options.type != DType::f32 && options.type != DType::f16 && options.type != DType::bf16)
    return Error{Reason::bad_usage, "The network has tensors of f32, f16 or bf16."};
  Builder b{NetworkBuilder("video_unet", options.seed, options.batchnorm), options};
  b.net.store_in(options.type);
  if (!options.weights) b.net.leave_large_unwritten();
  const Dims shape{options.batch, kFrame, options.size, options.size};
  const TensorId frame = b.net.input("frame", shape), previous = b.net.input("previous", shape);
  const TensorId time = b.net.input("time", {1, 1, 1, 1});
  const TensorId sizes = b.net.integers("time.sizes", {options.batch, 1, options.size, options.size});
  const TensorId plane = b.net.op("time.plane", "Expand", ExpandOp{}, {time, sizes}, 1);
  TensorId x = b.unet("first", b.net.concat("first.concat", frame, plane), options.base);
  x = b.unet("second", x, options.base / 2);
  x = b.block("temporal0", b.net.concat("temporal.concat", x, previous), options.base, 1);
  x = b.attention("temporal1", x, options.size);
  x = b.block("temporal2", x, kFrame);
  b.net.output(x, "next", shape);
  return b.net.finish();
}

}  // namespace sparkle
