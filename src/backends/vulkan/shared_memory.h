// Shared memory of a step's kernels, from the stage and its schedule alone, before any driver sees a shader.
#pragma once

#include "families/stage.h"

namespace sparkle::vulkan {

// Bytes that a workgroup of the step's hungriest kernel declares, as the arrays in glsl/ do; 0 where it has none.
int64_t shared_bytes_of(const Stage& stage, const Schedule& schedule);

}  // namespace sparkle::vulkan
