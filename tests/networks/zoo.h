// Well-known networks as Graphs with seeded weights: full-size models for speed and tests without downloads.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.h"

namespace sparkle {

struct ZooOptions {
  uint64_t seed = 1;
  bool batchnorm = false;  // BatchNormalization as operators of its own; else folded into the convolutions (same function)
  int64_t batch = 1;
  int64_t size = 224;       // rows and columns of resnet50's pictures
  DType type = DType::f32;  // what tensors are stored in: f32, f16 or bf16; inputs and outputs are f32
};

// resnet50 (v1.5), mobilenetv2, squeezenet1.1, vgg16 (all 3x224x224 to 1000 classes), unet (3x256x256), replknet (depthwise
// 31x31 and 29x29 filters), tiny_chain, tiny_residual, tiny_depthwise, tiny_unet, tiny_detector (SiLU, pooling at three sizes,
// resizing, a gate over channels), tiny_attention (embedding, layer normalisation, two heads of attention).
std::span<const std::string_view> zoo_names();
Result<Graph> zoo_network(std::string_view name, const ZooOptions& options = {});

}  // namespace sparkle
