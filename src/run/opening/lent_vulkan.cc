#include "run/opening/lent_vulkan.h"

#include <cstring>

#ifdef SPARKLE_WITH_VULKAN
#include "backends/vulkan/driver/memory.h"
#include "backends/vulkan/vulkan_backend.h"
#endif

namespace sparkle {

#ifdef SPARKLE_WITH_VULKAN

Result<std::shared_ptr<Buffer>> wrap_lent_buffer(Backend& backend, const LentVulkanBuffer& lent) {
  auto* vulkan = dynamic_cast<vulkan::VulkanBackend*>(&backend);
  if (!vulkan)
    return Error{Reason::device_unusable,
                 "The device '" + backend.device().name + "' is not one of Vulkan's, and has no use for a VkBuffer."};
  vulkan::LentBuffer buffer;
  buffer.device = static_cast<VkDevice>(lent.device);
  std::memcpy(&buffer.buffer, &lent.buffer, sizeof buffer.buffer);  // a pointer or a number, as Vulkan's headers have it
  buffer.usage = lent.usage;
  buffer.offset = lent.offset;
  buffer.bytes = lent.bytes;
  return vulkan->wrap(buffer);
}

Result<VulkanPlace> vulkan_place(Buffer& buffer) {
  const auto* found = dynamic_cast<vulkan::DeviceBuffer*>(&buffer);
  if (!found) return Error{Reason::bad_usage, "The buffer is not one of a Vulkan device."};
  VulkanPlace place;
  const VkBuffer handle = found->buffer();
  std::memcpy(&place.buffer, &handle, sizeof handle);
  place.offset = found->offset();
  place.address = found->address();
  return place;
}

#else

namespace {
Error none() { return {Reason::device_unusable, "This build of Sparkle has no Vulkan backend."}; }
}  // namespace

Result<OpenBackend> open_lent_vulkan(const LentVulkan&, const BackendOptions&) { return none(); }
Result<std::shared_ptr<Buffer>> wrap_lent_buffer(Backend&, const LentVulkanBuffer&) { return none(); }
Result<VulkanPlace> vulkan_place(Buffer&) { return none(); }

#endif

}  // namespace sparkle
