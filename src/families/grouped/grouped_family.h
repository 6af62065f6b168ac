// What the files of the grouped family share.
#pragma once

#include <string_view>

#include "families/common.h"
#include "families/family.h"
#include "families/grouped/grouped.h"
#include "families/stage.h"

namespace sparkle {

// Outputs of a tile: the origins of permuted lanes take two registers.
inline int grouped_pixels(std::string_view variant, const MathUnit& unit) {
  return variant == "permute" && registers_of(unit) < 32 ? 10 : 12;
}

Blocking grouped_blocking(const Stage& stage, const Schedule& schedule, const Device& device);

}  // namespace sparkle
