// Builds Graphs of convolutional networks layer by layer with seeded weights: the same bytes on every machine, scaled so that
// activations keep their size through the network (He et al. 2015).
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace sparkle {

// Nearly normal numbers (mean 0, deviation 1) as a function of a counter: the sum of eight 16-bit pieces of a hash, exact
// integer arithmetic until the last scaling, so no machine's logarithm or cosine has a say. `stream` tells tensors apart.
float normal_at(uint64_t seed, uint64_t stream, uint64_t index);

enum class LayerActivation : uint8_t { none, relu, relu6 };

struct ConvLayer {
  int64_t filters = 1, kernel = 1, stride = 1, pad = 0, groups = 1;
  LayerActivation activation = LayerActivation::relu;
  bool normalised = false;  // followed by BatchNormalization (or by nothing, with the same values folded in)
  double gain = 1;          // factor of the weights: below 1 where a residual is added
};

class NetworkBuilder {
 public:
  NetworkBuilder(std::string name, uint64_t seed, bool batchnorm);

  TensorId input(const std::string& name, const Dims& shape, DType dtype = DType::f32);
  TensorId conv(const std::string& name, TensorId x, const ConvLayer& layer);
  TensorId up_conv(const std::string& name, TensorId x, int64_t filters);  // ConvTranspose 2x2, stride 2
  TensorId max_pool(const std::string& name, TensorId x, int64_t kernel, int64_t stride, int64_t pad, bool ceil_mode = false);
  TensorId global_average(const std::string& name, TensorId x);
  TensorId flatten(const std::string& name, TensorId x, int64_t features);
  TensorId dense(const std::string& name, TensorId x, int64_t outputs, bool relu);
  TensorId add(const std::string& name, TensorId a, TensorId b, bool relu);
  TensorId concat(const std::string& name, TensorId a, TensorId b);
  TensorId sigmoid(const std::string& name, TensorId x);
  // x * sigmoid(x), written as exporters write it.
  TensorId silu(const std::string& name, TensorId x);
  // Any other operator: its ONNX type, parameters, inputs, and the channels of its result.
  TensorId op(const std::string& name, const std::string& type, OpParams params, std::vector<TensorId> inputs,
              int64_t channels);
  TensorId weights(const std::string& name, const Dims& shape, double deviation, double mean = 0);
  TensorId integers(const std::string& name, const std::vector<int64_t>& values);
  TensorId floats(const std::string& name, const std::vector<float>& values);
  // Seeded values, each tensor of a stream of its own, in f32; and what a network holds, rounded where store_in() says so.
  HostTensor normal(const Dims& shape, double deviation, double mean = 0);
  TensorId constant(const std::string& name, HostTensor value);
  // Constants of f32 that come from here on are rounded to this type; inputs of f32 become it, and outputs are f32 again.
  void store_in(DType type) { stored_ = type; }
  // Large constants that come from here on have sizes alone: memory that nobody writes takes no room, for whoever only plans.
  void leave_large_unwritten() { written_ = false; }
  int64_t channels(TensorId x) const { return channels_[static_cast<size_t>(x)]; }
  // The tensor becomes an output called `name`, of this shape.
  void output(TensorId x, const std::string& name, const Dims& shape);
  Graph finish() { return std::move(graph_); }

 private:
  TensorId activate(const std::string& name, TensorId x, LayerActivation activation);

  Graph graph_;
  uint64_t seed_;
  bool batchnorm_;
  DType stored_ = DType::f32;
  bool written_ = true;
  uint64_t streams_ = 0;
  std::vector<int64_t> channels_;  // per tensor
};

}  // namespace sparkle
