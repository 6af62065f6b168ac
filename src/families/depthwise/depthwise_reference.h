// The plain double-precision loops of the depthwise family.
#pragma once

#include "families/stage.h"

namespace sparkle {

void depthwise_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs);

}  // namespace sparkle
