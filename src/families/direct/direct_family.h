// What the files of the direct family share.
#pragma once

#include "families/direct/direct.h"
#include "families/family.h"
#include "families/stage.h"

namespace sparkle {

// How an input row lies in the scratch: maps in the lanes broadcast single inputs, so that their order matters little.
DirectRow direct_row_of(const DirectSchedule& schedule, const Stage& stage, int64_t columns, int64_t lanes);
// Longest tiles that there are kernels for: outputs (slide, maps) or vectors of them (pixels) by maps or vectors of maps.
int64_t most_direct_pixels(std::string_view variant, int64_t maps, int64_t taps, bool many_registers);

Footprint direct_footprint(const Stage& stage, const Schedule& schedule, const Device& device);
Blocking direct_blocking(const Stage& stage, const Schedule& schedule, const Device& device);

}  // namespace sparkle
