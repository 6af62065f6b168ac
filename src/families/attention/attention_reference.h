// The oracle of the attention family.
#pragma once

#include "families/stage.h"

namespace sparkle {

void attention_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs);

}  // namespace sparkle
