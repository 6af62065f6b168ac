// A large network of the kind that makes video by diffusion: two UNets, one after the other, and a block over the result and
// the frame before. At base 192 it has 880,258,653 parameters; at base 16 and 32x32 it is small enough for any machine.
#pragma once

#include "graph/graph.h"

namespace sparkle {

struct VideoUnetOptions {
  int64_t batch = 2;
  int64_t base = 192;       // channels of the first level; a multiple of 16, so that 16 heads share each attention
  int64_t size = 64;        // of the square frames; a multiple of 16
  DType type = DType::f32;  // of all tensors but the inputs and outputs, which are f32: f32, f16 or bf16
  uint64_t seed = 1;
  bool batchnorm = false;  // BatchNormalization as operators of its own; else folded into the convolutions
  bool weights = true;     // false: large weights have sizes alone, and nothing but a plan can be made of the network
};

// Inputs: frame and previous [batch, 3, size, size], time [1, 1, 1, 1]. Output: next, as frame. bench/gpu/video_unet.py builds
// the same network with the same weights: what changes here changes there. Errors: bad_usage.
Result<Graph> video_unet(const VideoUnetOptions& options);

}  // namespace sparkle
