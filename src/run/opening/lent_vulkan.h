// A Vulkan device and buffers of the caller's, by handles without Vulkan's types.
#pragma once

#include "run/opening/open_backend.h"

namespace sparkle {

// As sparkle_vulkan_options of sparkle.h.
struct LentVulkan {
  void* instance = nullptr;
  void* physical_device = nullptr;
  void* device = nullptr;
  void* queue = nullptr;
  uint32_t queue_family = 0;
  const void* device_create_info = nullptr;
  void (*lock_queue)(void*) = nullptr;
  void (*unlock_queue)(void*) = nullptr;
  void* user = nullptr;
};
// A backend on the caller's device. Errors: device_unusable, saying what is missing.
Result<OpenBackend> open_lent_vulkan(const LentVulkan& lent, const BackendOptions& options);

struct LentVulkanBuffer {
  void* device = nullptr;
  uint64_t buffer = 0;
  uint32_t usage = 0;
  int64_t offset = 0, bytes = 0;
};
// Errors: bad_usage, device_unusable for a backend that is not Vulkan's.
Result<std::shared_ptr<Buffer>> wrap_lent_buffer(Backend& backend, const LentVulkanBuffer& lent);

// Where a buffer of a Vulkan backend lies.
struct VulkanPlace {
  uint64_t buffer = 0, address = 0;
  int64_t offset = 0;
};
Result<VulkanPlace> vulkan_place(Buffer& buffer);

}  // namespace sparkle
