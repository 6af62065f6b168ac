// Vulkan as volk loads it: functions are found at run time, so that programs start where there is no Vulkan.
#pragma once

#define VK_NO_PROTOTYPES
#include <volk.h>

#include "base/result.h"

namespace sparkle::vulkan {

// A Vulkan structure with its type filled in, all else zero.
template <class T>
T structure(VkStructureType type) {
  T s{};
  s.sType = type;
  return s;
}

// "VK_ERROR_DEVICE_LOST" for people who look it up.
std::string name_of(VkResult result);
// An error of the reason that fits the result: out_of_memory, device_lost or device_unusable. `what`: "vkCreateDevice".
Error error_of(VkResult result, const std::string& what);

// SPARKLE_VK(call, "what"): returns the error of a call that did not succeed.
#define SPARKLE_VK(call, what)                                                                                     \
  do {                                                                                                             \
    if (const VkResult result_ = (call); result_ != VK_SUCCESS) return ::sparkle::vulkan::error_of(result_, what); \
  } while (false)

}  // namespace sparkle::vulkan
