// The one-hot form of the scatter family on Vulkan.
#pragma once

#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

// Errors: type_not_served for indices that are neither f32 nor integers of 32 and 64 bits.
Result<VulkanKernelPtr> make_one_hot(const Stage& stage, const Workshop& shop);

}  // namespace sparkle::vulkan
