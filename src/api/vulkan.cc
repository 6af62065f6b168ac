// The caller's own Vulkan devices and buffers in sparkle.h.
#include "api/handles.h"
#include "run/opening/lent_vulkan.h"

using sparkle::Error;
using sparkle::Reason;
using sparkle::Status;
using sparkle::api::guarded;

sparkle_status sparkle_vulkan_device_open(const sparkle_vulkan_options* vulkan, const sparkle_device_options* options,
                                          sparkle_device** device) {
  return guarded([&]() -> Status {
    if (!vulkan || !device)
      return Error{Reason::bad_usage, "sparkle_vulkan_device_open needs the device's handles and a place for the device."};
    SPARKLE_CHECK(sparkle::api::check_size("sparkle_vulkan_options", vulkan->size, sizeof *vulkan));
    const std::pair<const void*, const char*> needed[] = {{vulkan->instance, "instance"},
                                                          {vulkan->physical_device, "physical_device"},
                                                          {vulkan->device, "device"},
                                                          {vulkan->queue, "queue"},
                                                          {vulkan->device_create_info, "device_create_info"}};
    for (const auto& [handle, name] : needed)
      if (!handle) return Error{Reason::bad_usage, "sparkle_vulkan_options." + std::string(name) + " is NULL; it is needed."};
    if (!vulkan->lock_queue != !vulkan->unlock_queue)
      return Error{Reason::bad_usage, "sparkle_vulkan_options needs both lock_queue and unlock_queue, or neither."};
    SPARKLE_TRY(wanted, sparkle::api::backend_options(options));
    const sparkle::LentVulkan lent{vulkan->instance,   vulkan->physical_device, vulkan->device,
                                   vulkan->queue,      vulkan->queue_family,    vulkan->device_create_info,
                                   vulkan->lock_queue, vulkan->unlock_queue,    vulkan->user};
    SPARKLE_TRY(open, sparkle::open_lent_vulkan(lent, wanted));
    *device = new sparkle_device{std::move(open.backend)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_buffer_wrap_vulkan(sparkle_device* device, const sparkle_vulkan_buffer* vulkan,
                                          sparkle_buffer** buffer) {
  return guarded([&]() -> Status {
    if (!device || !vulkan || !buffer)
      return Error{Reason::bad_usage, "sparkle_buffer_wrap_vulkan needs a device, a VkBuffer's description and a place."};
    SPARKLE_CHECK(sparkle::api::check_size("sparkle_vulkan_buffer", vulkan->size, sizeof *vulkan));
    const sparkle::LentVulkanBuffer lent{vulkan->device, vulkan->buffer, vulkan->usage, vulkan->offset, vulkan->bytes};
    SPARKLE_TRY(made, sparkle::wrap_lent_buffer(*device->backend, lent));
    *buffer = new sparkle_buffer{device->backend, std::move(made)};
    return sparkle::ok();
  });
}

sparkle_status sparkle_buffer_vulkan(const sparkle_buffer* buffer, uint64_t* vk_buffer, int64_t* offset, uint64_t* address) {
  return guarded([&]() -> Status {
    if (!buffer) return Error{Reason::bad_usage, "sparkle_buffer_vulkan needs a buffer."};
    SPARKLE_TRY(place, sparkle::vulkan_place(*buffer->buffer));
    if (vk_buffer) *vk_buffer = place.buffer;
    if (offset) *offset = place.offset;
    if (address) *address = place.address;
    return sparkle::ok();
  });
}
