// What all measurements of rates by Vulkan share.
#pragma once

#include "backends/roof_runs.h"
#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "backends/vulkan/vulkan_backend.h"

namespace sparkle::vulkan {

// A kernel of one dispatch, whose push constants begin with the addresses of that many buffers.
Result<std::unique_ptr<VulkanKernel>> bare_kernel(const Workshop& shop, const PipelineRequest& request, uint32_t groups,
                                                  int operands, std::initializer_list<int> pushed);

// Enough groups to fill any device several times over; software devices need few.
uint32_t groups_of(const Device& device);

}  // namespace sparkle::vulkan
