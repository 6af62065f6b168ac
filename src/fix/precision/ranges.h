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
  float largest() const;
};
inline constexpr int kBins = 2048;

using Ranges = std::map<std::string, Range>;

// Of the f32 inputs and results of all nodes. Errors: what running says.
Result<Ranges> measure_ranges(const Document& doc, const std::shared_ptr<Backend>& backend, const std::vector<Sample>& samples,
                              bool with_bins);

// How ranges are cut for 8 bits: not at all, at a share of the values, or where least is lost of how they lie (the least
// Kullback-Leibler divergence to 128 steps).
enum class Cut : uint8_t { min_max, percentile, entropy };
std::string_view name_of(Cut cut);
bool parse_name(std::string_view text, Cut& cut);
Range cut_range(const Range& range, Cut cut, double percentile);

}  // namespace sparkle::fix
