// The features that a caller switched on when it made a device: Vulkan does not tell them afterwards.
#pragma once

#include "backends/vulkan/driver/vk.h"

namespace sparkle::vulkan {

// `features` and what is chained to it as the driver filled it: what `made_with` did not ask for is taken away, in structures
// of Vulkan 1.1 to 1.3 or of the extensions that became part of them.
void keep_enabled(const VkDeviceCreateInfo& made_with, VkPhysicalDeviceFeatures2& features);

}  // namespace sparkle::vulkan
