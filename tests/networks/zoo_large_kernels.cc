// A network of large filters in small, after Ding et al. 2022 (RepLKNet): depthwise 31x31 and 29x29 between 1x1 convolutions,
// each followed by a pair of 1x1 convolutions that widens and narrows again, everything with residuals.
#include "networks/zoo_networks.h"

namespace sparkle {
namespace {

constexpr auto kNone = LayerActivation::none;
constexpr auto kRelu = LayerActivation::relu;
constexpr double kResidualGain = 0.5;

TensorId block(NetworkBuilder& net, const std::string& name, TensorId x, int64_t kernel) {
  const int64_t c = net.channels(x);
  TensorId y = net.conv(name + ".narrow", x, {c, 1, 1, 0, 1, kRelu, true});
  y = net.conv(name + ".large", y, {c, kernel, 1, kernel / 2, c, kRelu, true});
  y = net.conv(name + ".wide", y, {c, 1, 1, 0, 1, kNone, true, kResidualGain});
  x = net.add(name + ".add", y, x, false);
  y = net.conv(name + ".mlp1", x, {4 * c, 1, 1, 0, 1, kRelu, true});
  y = net.conv(name + ".mlp2", y, {c, 1, 1, 0, 1, kNone, true, kResidualGain});
  return net.add(name + ".mlp.add", y, x, false);
}

}  // namespace

void replknet(NetworkBuilder& net, int64_t batch) {
  TensorId x = net.conv("stem1", net.input("input", {batch, 3, 224, 224}), {32, 3, 2, 1, 1, kRelu, true});
  x = net.conv("stem2", x, {32, 3, 2, 1, 32, kRelu, true});
  const int64_t kernels[] = {31, 29}, widths[] = {32, 64};
  for (int stage = 0; stage < 2; ++stage) {
    const std::string name = "stage" + std::to_string(stage + 1);
    x = net.conv(name + ".widen", x, {widths[stage], 1, 1, 0, 1, kRelu, true});
    if (stage > 0) x = net.conv(name + ".down", x, {widths[stage], 3, 2, 1, widths[stage], kRelu, true});
    for (int i = 0; i < 2; ++i) x = block(net, name + "." + std::to_string(i), x, kernels[stage]);
  }
  x = net.flatten("flatten", net.global_average("pool", x), net.channels(x));
  net.output(net.dense("fc", x, 100, false), "logits", {batch, 100});
}

}  // namespace sparkle
