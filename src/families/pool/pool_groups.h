// How GPUs share out long windows of which there are few: a workgroup for some outputs side by side (the variant group).
#pragma once

#include "families/stage.h"

namespace sparkle {

inline constexpr int64_t kPoolGroupThreads = 256;

// Whether threads take four channels at once.
bool pool_in_vec4(const Stage& stage);
// Outputs, or vec4s of channels, of a workgroup: what threads that read side by side in a plane's memory have.
int64_t pool_lanes(const Stage& stage);

}  // namespace sparkle
