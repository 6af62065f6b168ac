// Faults that tests bring about: each is what a driver may do at any time. Those of kernels come with a kernel factory that
// wraps the families' own; those of memory and queues with functions put before the driver's in the context's table.
#pragma once

#include <cstdlib>
#include <map>
#include <mutex>

#include "backends/vulkan/shaders/glsl_compiler.h"
#include "backends/self_tests/self_tests.h"
#include "backends/vulkan/vulkan_backend.h"

namespace sparkle::vulkan {

struct Faults {
  int64_t memory_bytes = 0;                     // allocations beyond so many bytes fail; 0: none
  int lost_at_submit = 0;                       // the so many-th submission and all later ones report a lost device; 0: none
  VkResult submit_says = VK_ERROR_DEVICE_LOST;  // or what else they say, as a driver that does not fit
  // "gemm/implicit": variants whose kernels do nothing, take seconds, end the process.
  std::string nothing{}, slow{}, crash{};
  std::string late{};  // what it computes is right, but takes some ms more
};

// A kernel that goes so many times round and leaves its output as it was.
inline Result<const Pipeline*> idle_pipeline(const Workshop& shop, int rounds) {
  const std::string text = R"glsl(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(push_constant, scalar) uniform Push { Floats x; } push;
void main() {
  if (gl_GlobalInvocationID.x > 0 || gl_WorkGroupID.y > 0 || gl_WorkGroupID.z > 0) return;
  float sum = 0.5;
  for (int i = 0; i < )glsl" +
                           std::to_string(rounds) + R"glsl(; ++i) sum = fma(sum, 0.99, float(i) * 1e-12);
  if (sum == 123.0) push.x.v[0] = sum;
})glsl";
  SPARKLE_TRY(words, compile_glsl(text));
  constexpr SpecializationConstant kOneThread[] = {{0, 1}, {1, 1}, {2, 1}};
  return shop.pipelines->get("idle_" + std::to_string(rounds), *words, kOneThread, 0);
}

inline MakeKernel faulty_kernels(const Faults& faults) {
  return [faults](const Stage& stage, const Schedule& schedule, const Workshop& shop,
                  uint32_t constants) -> Result<VulkanKernelPtr> {
    SPARKLE_TRY(kernel, make_kernel(stage, schedule, shop, constants));
    const std::string variant = self_test_of(stage, schedule).variant();
    if (variant == faults.crash) std::abort();
    if (variant == faults.late && !kernel->dispatches.empty()) {
      SPARKLE_TRY(pipeline, idle_pipeline(shop, 1 << 21));
      Dispatch late = kernel->dispatches.back();
      late.pipeline = pipeline, late.groups = {1, 1, 1}, late.after_previous = true;
      kernel->dispatches.push_back(std::move(late));
    }
    if (variant == faults.nothing || variant == faults.slow) {
      SPARKLE_TRY(pipeline, idle_pipeline(shop, variant == faults.nothing ? 0 : 1 << 28));
      for (Dispatch& d : kernel->dispatches) d.pipeline = pipeline;
    }
    return kernel;
  };
}

// What stands between one device and its driver. The functions have no word for it but the handles that they are called with.
struct SpoiltDriver {
  Faults faults;
  VolkDeviceTable real;
  int submitted = 0;
  int64_t allocated = 0;
  std::map<VkDeviceMemory, int64_t> bytes;
};
struct SpoiltDrivers {
  std::mutex mutex;
  std::map<VkDevice, std::shared_ptr<SpoiltDriver>> of_device;
  std::map<VkQueue, std::shared_ptr<SpoiltDriver>> of_queue;
  static SpoiltDrivers& all() {
    static SpoiltDrivers drivers;
    return drivers;
  }
};

inline VKAPI_ATTR VkResult VKAPI_CALL spoilt_submit(VkQueue queue, uint32_t count, const VkSubmitInfo2* infos, VkFence fence) {
  std::unique_lock lock(SpoiltDrivers::all().mutex);
  SpoiltDriver& driver = *SpoiltDrivers::all().of_queue.at(queue);
  if (++driver.submitted >= driver.faults.lost_at_submit) return driver.faults.submit_says;
  lock.unlock();
  return driver.real.vkQueueSubmit2(queue, count, infos, fence);
}

inline VKAPI_ATTR VkResult VKAPI_CALL spoilt_allocate(VkDevice device, const VkMemoryAllocateInfo* info,
                                                      const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  const std::lock_guard lock(SpoiltDrivers::all().mutex);
  SpoiltDriver& driver = *SpoiltDrivers::all().of_device.at(device);
  const auto bytes = static_cast<int64_t>(info->allocationSize);
  if (driver.allocated + bytes > driver.faults.memory_bytes) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkResult result = driver.real.vkAllocateMemory(device, info, callbacks, memory);
  if (result == VK_SUCCESS) driver.allocated += bytes, driver.bytes[*memory] = bytes;
  return result;
}

inline VKAPI_ATTR void VKAPI_CALL spoilt_free(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  const std::lock_guard lock(SpoiltDrivers::all().mutex);
  SpoiltDriver& driver = *SpoiltDrivers::all().of_device.at(device);
  if (const auto at = driver.bytes.find(memory); at != driver.bytes.end()) {
    driver.allocated -= at->second;
    driver.bytes.erase(at);
  }
  driver.real.vkFreeMemory(device, memory, callbacks);
}

// The backend has just been opened and nobody else has it: the functions that it calls are changed behind its back.
inline void spoil_driver(VulkanBackend& backend, const Faults& faults) {
  const Context& context = backend.context();
  auto& table = const_cast<VolkDeviceTable&>(context.vk());
  const auto driver = std::make_shared<SpoiltDriver>();
  driver->faults = faults, driver->real = table;
  const std::lock_guard lock(SpoiltDrivers::all().mutex);
  if (faults.lost_at_submit > 0) {
    for (const Queue* queue : {&context.compute(), &context.transfer()}) SpoiltDrivers::all().of_queue[queue->handle] = driver;
    table.vkQueueSubmit2 = spoilt_submit;
  }
  if (faults.memory_bytes > 0) {
    SpoiltDrivers::all().of_device[context.device()] = driver;
    table.vkAllocateMemory = spoilt_allocate, table.vkFreeMemory = spoilt_free;
  }
}

}  // namespace sparkle::vulkan
