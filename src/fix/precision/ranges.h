// What the values of a model's tensors are on given inputs: the smallest and largest, and how they lie between.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fix/document/document.h"
#include "fix/proof/runs.h"

namespace sparkle::fix {

using Sample = std::vector<HostTensor>;  // one tensor per input of the model

struct Range {
  float low = 0, high = 0;
  std::vector<float> bins;  // how many values lie in each of kBins equal parts of low..high; empty where nobody asked
  double zeros = 0;         // of these, the values that are zero itself
  // Of each channel; empty where nobody asked.
  std::vector<double> means;
  std::vector<float> lows, highs;
  float largest() const;
};
inline constexpr int kBins = 2048;

using Ranges = std::map<std::string, Range>;

struct RangeOptions {
  bool bins = false;
  std::map<std::string, int> channels;  // tensors whose channels are wanted one by one, with the axis of these
};

// Of the f32 inputs and results of all nodes. Errors: what running says.
Result<Ranges> measure_ranges(const Document& doc, const std::shared_ptr<Backend>& backend, const std::vector<Sample>& samples,
                              const RangeOptions& options);

}  // namespace sparkle::fix
