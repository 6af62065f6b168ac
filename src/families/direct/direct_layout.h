// How the direct kernels come by their inputs: read where they lie, laid into the scratch by whole vectors, or one by one.
// Shared by the family's footprint and the kernels.
#pragma once

#include "families/stage.h"

namespace sparkle {

enum class DirectReading : uint8_t { in_place, vectors, one_by_one };

// `variant`: "pixels", "slide" or "maps"; `columns`: outputs of a strip.
DirectReading direct_reading(const Stage& stage, std::string_view variant, int64_t columns, int64_t lanes);

}  // namespace sparkle
