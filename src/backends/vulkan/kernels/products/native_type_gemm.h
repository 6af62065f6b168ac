// Products of doubles and of 32- and 64-bit integers (glsl/gemm_native_type.comp).
#pragma once

#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "families/loops/tile_schedule.h"

namespace sparkle::vulkan {

// Errors: type_not_served where the device computes in no doubles, or the stage mixes types.
Result<VulkanKernelPtr> make_native_type_gemm(const Stage& stage, const TileSchedule& tile, const Workshop& shop);

}  // namespace sparkle::vulkan
