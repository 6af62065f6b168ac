// The roofs of a Vulkan device, measured by its own clock: multiply-adds, copies, and what one more dispatch costs.
#pragma once

#include "backends/vulkan/kernels/vulkan_kernel.h"
#include "backends/vulkan/vulkan_backend.h"

namespace sparkle::vulkan {

// Multiply-adds of a unit ("fma-f32", "fma-f16", "coopmat-f16") at this moment, counted as two, per second; 0 where it has no
// kernel. Takes about 2 ms.
Result<double> measure_flops(VulkanBackend& backend, const Workshop& shop, std::string_view unit);

// Bytes per second of memory when so many bytes are read, or as many read and written, over and over: of whichever is more, by
// caches of the device where they hold them. 0 without a clock. Takes about 4 ms.
Result<double> measure_bandwidth(VulkanBackend& backend, const Workshop& shop, double bytes);

// Fills in the rates of `device`: flops of its vector units (of matrix units a cautious guess), the rate of reading and writing
// its memory, its caches and shared memory, launch_seconds; sets calibrated. A GPU takes up to some seconds.
Status measure_roofs(VulkanBackend& backend, const Workshop& shop, Device& device);

// Puts the measured rate of one of the device's matrix units in the place of the guess, where there is a kernel for it.
Status measure_matrix_unit(VulkanBackend& backend, const Workshop& shop, Device& device, std::string_view unit);

}  // namespace sparkle::vulkan
