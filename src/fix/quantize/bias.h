// What rounding weights does to the mean of a layer's sums, which its bias can take back (Nagel et al., "Data-Free Quantization
// through Weight Equalization and Bias Correction", 2019; here with measured means of the inputs).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fix/document/document.h"

namespace sparkle::fix {

// Which part of a convolution's outputs each tap of the filter meets an input at; beside them it meets padding. The last two
// axes of `w` and one or none before them are the filter's.
std::vector<double> tap_shares(const ::onnx::NodeProto& conv, const Dims& x, const Dims& w, const Dims& y);

// For each of the K outputs of a product: the mean of sum (rounded - weight) * input. Weights are [K, C / groups, taps], or,
// where `axis` is 1, [C, K]; `means`: of the C inputs.
std::vector<double> mean_shift(const HostTensor& weights, std::span<const float> rounded, int64_t K, int axis,
                               std::span<const double> means, std::span<const double> shares);

}  // namespace sparkle::fix
