// The plain double-precision loops of the pool family.
#pragma once

#include "families/stage.h"

namespace sparkle {

void pool_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs);

}  // namespace sparkle
