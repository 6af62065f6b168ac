// The plain loops of the quantize family.
#pragma once

#include "families/stage.h"

namespace sparkle {

void quantize_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs);

}  // namespace sparkle
