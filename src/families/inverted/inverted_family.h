// The parts that inverted_info() is made of.
#pragma once

#include <span>

#include "families/family.h"
#include "families/stage.h"

namespace sparkle {

// Whether the last vector of filters is at most half full, beside one or two full ones: what the variant pairs6x4 serves.
inline bool inverted_pairs(int64_t filters, int64_t lanes) {
  const int64_t full = filters / lanes, rest = filters % lanes;
  return lanes >= 4 && (full == 1 || full == 2) && rest > 0 && 2 * rest <= lanes;
}

void inverted_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs);
Footprint inverted_footprint(const Stage& stage, const Schedule& schedule, const Device& device);
Blocking inverted_blocking(const Stage& stage, const Schedule& schedule, const Device& device);

}  // namespace sparkle
