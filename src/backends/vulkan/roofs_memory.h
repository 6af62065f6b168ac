// What memory of a Vulkan device gives, measured: caches that all cores share and shared memory, by all cores and by one.
#pragma once

#include <span>
#include <vector>

#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "backends/vulkan/vulkan_backend.h"
#include "device/memory_curve.h"

namespace sparkle::vulkan {

// Of these working sets, in bytes; a point takes some milliseconds. So many workgroups of `group_threads` read at once: one
// keeps to one core. Empty without a clock.
Result<std::vector<CurvePoint>> measure_read_curve(VulkanBackend& backend, const Workshop& shop, uint32_t groups,
                                                   uint32_t group_threads, std::span<const double> sets);

// Bytes per second that so many workgroups read from shared memory; 0 without a clock.
Result<double> measure_shared(VulkanBackend& backend, const Workshop& shop, uint32_t groups);

// Fills in shared memory's rates and puts what caches there are into `device`, whose last level's rate of one core it sets too.
// Of software devices shared memory alone: their caches are the host's.
Status measure_memory(VulkanBackend& backend, const Workshop& shop, Device& device);

}  // namespace sparkle::vulkan
