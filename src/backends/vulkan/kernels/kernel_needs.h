// What a step's kernels need of a core, from the stage and its schedule alone, before any driver sees a shader.
#pragma once

#include "families/gemm/gemm_tiles.h"
#include "families/stage.h"

namespace sparkle::vulkan {

// Of a workgroup of the step's hungriest kernel. Threads: as its shader is dispatched. Shared bytes: as the arrays in glsl/; 0
// where it has none. Registers: of a thread, in 32-bit words, an upper bound, to which tests hold AMD's compiler - what a core
// has of them, divided by it, is how many subgroups it surely holds at once.
TileNeeds needs_of(const Stage& stage, const Schedule& schedule);

}  // namespace sparkle::vulkan
