// A model in 8-bit integers by post-training quantisation: QuantizeLinear and DequantizeLinear around what becomes integers,
// weights with a scale per output channel, activations with one by what was measured of them; inputs and outputs stay f32.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fix/precision/narrow.h"
#include "fix/precision/ranges.h"
#include "fix/quantize/cut.h"

namespace sparkle::fix {

struct QuantizeOptions {
  Cut cut = Cut::mse;
  double percentile = 99.99;
};

struct QuantizePlan {
  struct Product {
    int node = 0;
    std::string layer, name;  // its first result, its label
    int64_t K = 0;            // output channels
    int axis = 0;             // of its weights, along which they lie
    double macs = 0;
    bool integer = false;
    std::string why;                    // it stays wide
    std::string result;                 // behind a bias and a bound that are its own
    std::vector<double> means, shares;  // of what it reads, by channel; of its filter's taps (bias.h)
  };
  std::vector<Product> products;
  std::map<std::string, int> scaled;  // tensors that become 8-bit, with the number of their scale
  std::vector<Range> scales;
  std::map<std::string, ChannelSteps> by_channel;  // tensors that become 8-bit with steps of their own in each channel

  double share() const;  // of the multiplications that become integer
};

// Which products, and which tensors with which ranges. Tensors of concatenations and of the maxima of windows share one scale.
QuantizePlan plan_quantization(const Document& doc, const std::map<std::string, TensorInfo>& tensors, const Ranges& ranges,
                               const Layers& wide, const QuantizeOptions& options);

// The model has opset 13 or a newer one, the first with scales per channel (raise_opset).
Status apply_quantization(Document& doc, const QuantizePlan& plan);

// What measure_ranges is asked for.
RangeOptions ranges_for(const Document& doc, const std::map<std::string, TensorInfo>& tensors, const QuantizeOptions& options);

// What the products of a model cost, all of them; of depthwise and dense ones alike.
std::vector<QuantizePlan::Product> products_of(const Document& doc, const std::map<std::string, TensorInfo>& tensors);

}  // namespace sparkle::fix
