// Sources: He et al. 2015 (ResNet; v1.5 puts the stride on the 3x3), Sandler et al. 2018 (MobileNetV2), Iandola et al. 2016
// (SqueezeNet; 1.1 is the authors' later release), Simonyan and Zisserman 2014 (VGG), Ronneberger et al. 2015 (U-Net).
#include "networks/zoo.h"

#include <algorithm>

#include "networks/network_builder.h"
#include "networks/zoo_networks.h"

namespace sparkle {
namespace {
constexpr auto kNone = LayerActivation::none;
constexpr auto kRelu = LayerActivation::relu;
constexpr auto kRelu6 = LayerActivation::relu6;
constexpr double kResidualGain = 0.5;  // branches add a quarter of the variance, so sixteen blocks stay in range

void classify(NetworkBuilder& net, TensorId x, int64_t classes, int64_t batch) {
  x = net.flatten("flatten", net.global_average("pool", x), net.channels(x));
  net.output(net.dense("fc", x, classes, false), "logits", {batch, classes});
}

TensorId bottleneck(NetworkBuilder& net, const std::string& name, TensorId x, int64_t width, int64_t stride) {
  TensorId y = net.conv(name + ".conv1", x, {width, 1, 1, 0, 1, kRelu, true});
  y = net.conv(name + ".conv2", y, {width, 3, stride, 1, 1, kRelu, true});
  y = net.conv(name + ".conv3", y, {4 * width, 1, 1, 0, 1, kNone, true, kResidualGain});
  if (stride != 1 || net.channels(x) != 4 * width)
    x = net.conv(name + ".downsample", x, {4 * width, 1, stride, 0, 1, kNone, true});
  return net.add(name + ".add", y, x, true);
}

void resnet50(NetworkBuilder& net, int64_t batch, int64_t size) {
  TensorId x = net.conv("conv1", net.input("input", {batch, 3, size, size}), {64, 7, 2, 3, 1, kRelu, true});
  x = net.max_pool("maxpool", x, 3, 2, 1);
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage)
    for (int64_t block = 0; block < blocks[stage]; ++block)
      x = bottleneck(net, "layer" + std::to_string(stage + 1) + "." + std::to_string(block), x, int64_t{64} << stage,
                     stage > 0 && block == 0 ? 2 : 1);
  classify(net, x, 1000, batch);
}

void resnet50_of_pictures(NetworkBuilder& net, int64_t batch) { resnet50(net, batch, ZooOptions{}.size); }

TensorId inverted_residual(NetworkBuilder& net, const std::string& name, TensorId x, int64_t filters, int64_t expand,
                           int64_t stride) {
  TensorId y = x;
  const int64_t hidden = net.channels(x) * expand;
  if (expand != 1) y = net.conv(name + ".expand", y, {hidden, 1, 1, 0, 1, kRelu6, true});
  y = net.conv(name + ".depthwise", y, {hidden, 3, stride, 1, hidden, kRelu6, true});
  const bool residual = stride == 1 && net.channels(x) == filters;
  y = net.conv(name + ".project", y, {filters, 1, 1, 0, 1, kNone, true, residual ? kResidualGain : 1});
  return residual ? net.add(name + ".add", x, y, false) : y;
}

void mobilenetv2(NetworkBuilder& net, int64_t batch) {
  constexpr struct {
    int64_t expand, filters, blocks, stride;
  } kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  TensorId x = net.conv("stem", net.input("input", {batch, 3, 224, 224}), {32, 3, 2, 1, 1, kRelu6, true});
  int index = 0;
  for (const auto& stage : kStages)
    for (int64_t block = 0; block < stage.blocks; ++block)
      x = inverted_residual(net, "block" + std::to_string(++index), x, stage.filters, stage.expand,
                            block == 0 ? stage.stride : 1);
  x = net.conv("head", x, {1280, 1, 1, 0, 1, kRelu6, true});
  classify(net, x, 1000, batch);
}

TensorId fire(NetworkBuilder& net, const std::string& name, TensorId x, int64_t squeeze, int64_t expand) {
  x = net.conv(name + ".squeeze", x, {squeeze});
  const TensorId a = net.conv(name + ".expand1x1", x, {expand});
  const TensorId b = net.conv(name + ".expand3x3", x, {expand, 3, 1, 1});
  return net.concat(name + ".concat", a, b);
}

void squeezenet(NetworkBuilder& net, int64_t batch) {
  TensorId x = net.conv("conv1", net.input("input", {batch, 3, 224, 224}), {64, 3, 2});
  x = net.max_pool("pool1", x, 3, 2, 0, true);
  x = fire(net, "fire2", x, 16, 64);
  x = fire(net, "fire3", x, 16, 64);
  x = net.max_pool("pool3", x, 3, 2, 0, true);
  x = fire(net, "fire4", x, 32, 128);
  x = fire(net, "fire5", x, 32, 128);
  x = net.max_pool("pool5", x, 3, 2, 0, true);
  x = fire(net, "fire6", x, 48, 192);
  x = fire(net, "fire7", x, 48, 192);
  x = fire(net, "fire8", x, 64, 256);
  x = fire(net, "fire9", x, 64, 256);
  x = net.conv("conv10", x, {1000});
  net.output(net.flatten("flatten", net.global_average("pool10", x), 1000), "logits", {batch, 1000});
}

void vgg16(NetworkBuilder& net, int64_t batch) {
  const int64_t depths[] = {2, 2, 3, 3, 3};
  const int64_t widths[] = {64, 128, 256, 512, 512};
  TensorId x = net.input("input", {batch, 3, 224, 224});
  for (int stage = 0; stage < 5; ++stage) {
    const std::string name = std::to_string(stage + 1);
    for (int64_t i = 0; i < depths[stage]; ++i)
      x = net.conv("conv" + name + "_" + std::to_string(i + 1), x, {widths[stage], 3, 1, 1});
    x = net.max_pool("pool" + name, x, 2, 2, 0);
  }
  x = net.flatten("flatten", x, 512 * 7 * 7);
  x = net.dense("fc7", net.dense("fc6", x, 4096, true), 4096, true);
  net.output(net.dense("fc8", x, 1000, false), "logits", {batch, 1000});
}

TensorId double_conv(NetworkBuilder& net, const std::string& name, TensorId x, int64_t filters) {
  x = net.conv(name + ".conv1", x, {filters, 3, 1, 1, 1, kRelu, true});
  return net.conv(name + ".conv2", x, {filters, 3, 1, 1, 1, kRelu, true});
}

// `levels` halvings, `width` channels at full size, one output map through a sigmoid.
void unet(NetworkBuilder& net, int64_t batch, int64_t size, int levels, int64_t width) {
  TensorId x = net.input("input", {batch, 3, size, size});
  std::vector<TensorId> skips;
  for (int level = 0; level < levels; ++level) {
    skips.push_back(double_conv(net, "down" + std::to_string(level), x, width << level));
    x = net.max_pool("pool" + std::to_string(level), skips.back(), 2, 2, 0);
  }
  x = double_conv(net, "bottom", x, width << levels);
  for (int level = levels - 1; level >= 0; --level) {
    const std::string name = "up" + std::to_string(level);
    x = net.concat(name + ".concat", net.up_conv(name + ".upsample", x, width << level), skips[static_cast<size_t>(level)]);
    x = double_conv(net, name, x, width << level);
  }
  x = net.conv("head", x, {1, 1, 1, 0, 1, kNone});
  net.output(net.sigmoid("mask", x), "mask", {batch, 1, size, size});
}

void tiny_chain(NetworkBuilder& net, int64_t batch) {
  TensorId x = net.conv("conv1", net.input("input", {batch, 3, 16, 16}), {8, 3, 1, 1, 1, kRelu, true});
  x = net.conv("conv2", net.max_pool("pool1", x, 2, 2, 0), {16, 3, 2, 1, 1, kRelu, true});
  classify(net, x, 10, batch);
}

void tiny_residual(NetworkBuilder& net, int64_t batch) {
  TensorId x = net.conv("conv1", net.input("input", {batch, 3, 16, 16}), {16, 3, 1, 1, 1, kRelu, true});
  x = bottleneck(net, "block1", x, 4, 1);
  classify(net, bottleneck(net, "block2", x, 8, 2), 10, batch);
}

void tiny_depthwise(NetworkBuilder& net, int64_t batch) {
  TensorId x = net.conv("stem", net.input("input", {batch, 3, 16, 16}), {8, 3, 2, 1, 1, kRelu6, true});
  x = inverted_residual(net, "block1", x, 8, 4, 1);
  classify(net, inverted_residual(net, "block2", x, 12, 4, 2), 10, batch);
}

struct Row {
  std::string_view name;
  void (*build)(NetworkBuilder&, int64_t batch);
};
constexpr Row kRows[] = {
    {"resnet50", resnet50_of_pictures},
    {"mobilenetv2", mobilenetv2},
    {"squeezenet1.1", squeezenet},
    {"vgg16", vgg16},
    {"unet", [](NetworkBuilder& net, int64_t batch) { unet(net, batch, 256, 4, 16); }},
    {"replknet", replknet},
    {"tiny_chain", tiny_chain},
    {"tiny_residual", tiny_residual},
    {"tiny_depthwise", tiny_depthwise},
    {"tiny_unet", [](NetworkBuilder& net, int64_t batch) { unet(net, batch, 16, 2, 4); }},
    {"tiny_detector", tiny_detector},
    {"tiny_attention", tiny_attention},
};
}  // namespace

std::span<const std::string_view> zoo_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const Row& row : kRows) list.push_back(row.name);
    return list;
  }();
  return names;
}

Result<Graph> zoo_network(std::string_view name, const ZooOptions& options) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == name; });
  if (row == std::end(kRows)) {
    std::string known;
    for (std::string_view other : zoo_names()) known += (known.empty() ? "" : ", ") + std::string(other);
    return Error{Reason::bad_usage, "There is no network '" + std::string(name) + "'; known are " + known + "."};
  }
  if (options.batch < 1) return Error{Reason::bad_usage, "A network wants a batch of 1 or more."};
  const bool sized = row->build == resnet50_of_pictures;
  if (options.size < 32 || (options.size != ZooOptions{}.size && !sized))
    return Error{Reason::bad_usage, "Only resnet50 has pictures of another size, of 32 rows or more."};
  if (options.type != DType::f32 && options.type != DType::f16 && options.type != DType::bf16)
    return Error{Reason::bad_usage, "A network has tensors of f32, f16 or bf16."};
  NetworkBuilder net{std::string(name), options.seed, options.batchnorm};
  net.store_in(options.type);
  if (sized) resnet50(net, options.batch, options.size);
  else row->build(net, options.batch);
  return net.finish();
}

}  // namespace sparkle
