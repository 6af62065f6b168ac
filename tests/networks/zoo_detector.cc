// A detector in small, after Ge et al. 2021 (YOLOX): SiLU everywhere, pooling at three sizes side by side (He et al. 2014), the
// coarse level resized and joined to the finer one; and a gate from the mean over channels (Woo et al. 2018, CBAM).
#include "networks/zoo_networks.h"

namespace sparkle {
namespace {

TensorId layer(NetworkBuilder& net, const std::string& name, TensorId x, int64_t filters, int64_t kernel, int64_t stride = 1,
               int64_t groups = 1) {
  return net.silu(name, net.conv(name, x, {filters, kernel, stride, kernel / 2, groups, LayerActivation::none, true, 1.6}));
}

TensorId spatial_pyramid(NetworkBuilder& net, TensorId x) {
  x = layer(net, "pyramid.narrow", x, 32, 1);
  TensorId joined = x;
  for (const int64_t window : {5, 9, 13}) {
    const std::string name = "pyramid.pool" + std::to_string(window);
    joined = net.concat(name + ".concat", joined, net.max_pool(name, x, window, 1, window / 2));
  }
  return layer(net, "pyramid.wide", joined, 64, 1);
}

TensorId twice_as_large(NetworkBuilder& net, const std::string& name, TensorId x) {
  ResizeOp resize;
  resize.params.mode = ResizeMode::nearest;
  resize.params.coordinates = ResizeCoordinates::asymmetric;
  resize.params.nearest = ResizeNearest::floor;
  return net.op(name, "Resize", resize, {x, kAbsent, net.floats(name + ".scales", {1, 1, 2, 2})}, net.channels(x));
}

TensorId gated(NetworkBuilder& net, const std::string& name, TensorId x) {
  ReduceOp mean;
  mean.kind = ReduceKind::mean;
  const TensorId map = net.op(name + ".mean", "ReduceMean", mean, {x, net.integers(name + ".axes", {1})}, 1);
  const TensorId gate = net.sigmoid(name + ".sigmoid", map);
  return net.op(name + ".mul", "Mul", PointwiseNode{PointwiseOp::mul}, {x, gate}, net.channels(x));
}

}  // namespace

void tiny_detector(NetworkBuilder& net, int64_t batch) {
  TensorId x = layer(net, "stem", net.input("image", {batch, 3, 64, 64}), 16, 3, 2);
  x = layer(net, "depthwise", x, 16, 3, 1, 16);
  const TensorId fine = layer(net, "fine", x, 32, 3, 2);
  x = spatial_pyramid(net, layer(net, "coarse", fine, 64, 3, 2));
  x = twice_as_large(net, "upsample", layer(net, "lateral", x, 32, 1));
  x = gated(net, "gate", layer(net, "join", net.concat("join.concat", x, fine), 32, 3));
  PadOp mirror;
  mirror.mode = PadMode::reflect;
  x = net.op("mirror", "Pad", mirror, {x, net.integers("mirror.pads", {0, 0, 1, 1, 0, 0, 1, 1})}, 32);
  x = net.conv("head", x, {6, 3, 1, 0, 1, LayerActivation::none});
  net.output(net.sigmoid("boxes", x), "boxes", {batch, 6, 16, 16});
}

}  // namespace sparkle
