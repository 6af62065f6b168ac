// How ranges are cut for 8 bits: what lies outside is held at the ends, and what lies inside has finer steps.
#pragma once

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "fix/precision/ranges.h"

namespace sparkle::fix {

// Not at all; where the mean squared error is least, seen behind the function that reads the values; at a share of the values;
// or where least is lost of how they lie (the least Kullback-Leibler divergence to 128 steps).
enum class Cut : uint8_t { min_max, mse, percentile, entropy };
std::string_view name_of(Cut cut);
bool parse_name(std::string_view text, Cut& cut);

using Function = std::function<double(double)>;

// `behind`: what alone reads the values, for Cut::mse; empty: they are read as they are.
Range cut_range(const Range& range, Cut cut, double percentile, const Function& behind = {});

// Steps of the channels of a tensor around one zero point: value = (q - zero) * steps[channel].
struct ChannelSteps {
  std::vector<float> steps;
  uint8_t zero = 0;
  int rank = 0;  // of the tensor

  float largest() const { return *std::max_element(steps.begin(), steps.end()); }
  // Of the largest step.
  std::vector<float> parts() const {
    std::vector<float> parts = steps;
    for (float& part : parts) part /= largest();
    return parts;
  }
};

// `range` knows its channels. Ends move in where `behind` is flat, which `cut` wants of all but Cut::min_max; the zero point is
// the one that makes steps least, each beside the least that its channel could have.
ChannelSteps steps_of_channels(const Range& range, Cut cut, const Function& behind);

// The function of its elements that all who read a tensor make of it (Sigmoid, x * Sigmoid(x), HardSwish ...); empty: they
// want the elements themselves.
Function function_behind(const Document& doc, const std::string& tensor);

}  // namespace sparkle::fix
