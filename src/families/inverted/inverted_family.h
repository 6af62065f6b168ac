// The parts that inverted_info() is made of.
#pragma once

#include <span>

#include "families/stage.h"

namespace sparkle {

void inverted_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs);
Footprint inverted_footprint(const Stage& stage, const Schedule& schedule, const Device& device);

}  // namespace sparkle
