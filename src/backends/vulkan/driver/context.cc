#include "backends/vulkan/driver/context.h"

#include "backends/vulkan/driver/cooperative.h"

namespace sparkle::vulkan {
namespace {

// The family whose flags hold `wanted` and as little else as possible; -1: none.
int family_with(const std::vector<VkQueueFamilyProperties>& families, VkQueueFlags wanted, VkQueueFlags unwanted) {
  for (size_t i = 0; i < families.size(); ++i)
    if ((families[i].queueFlags & wanted) == wanted && !(families[i].queueFlags & unwanted)) return static_cast<int>(i);
  return -1;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::open(std::shared_ptr<Instance> instance, size_t index,
                                               const ContextOptions& options) {
  std::shared_ptr<Context> context(new Context);
  context->instance_ = std::move(instance);
  context->index_ = index;
  context->options_ = options;
  if (!context->physical().unusable.empty())
    return Error{Reason::device_unusable, "The Vulkan device '" + context->physical().name +
                                              "' cannot be used: " + context->physical().unusable + "; use --device cpu."};
  SPARKLE_CHECK(options.lent ? context->borrow_device() : context->open_device());
  SPARKLE_CHECK(context->make_layout());
  if (!options.compile_only) SPARKLE_CHECK(context->find_memory());
  return context;
}

std::shared_ptr<Context> Context::described(PhysicalDevice device) {
  std::shared_ptr<Context> context(new Context);
  context->described_ = std::move(device);
  return context;
}

Status Context::open_device() {
  const PhysicalDevice& p = physical();
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(p.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(p.handle, &count, families.data());
  // Families without graphics are not disturbed by what is on the screen.
  int compute = family_with(families, VK_QUEUE_COMPUTE_BIT, VK_QUEUE_GRAPHICS_BIT);
  if (compute < 0) compute = family_with(families, VK_QUEUE_COMPUTE_BIT, 0);
  if (compute < 0)
    return Error{Reason::device_unusable, "The Vulkan device '" + p.name + "' has no queue for compute; use --device cpu."};
  int transfer =
      options_.one_queue ? -1 : family_with(families, VK_QUEUE_TRANSFER_BIT, VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT);
  if (transfer < 0) transfer = compute;

  const float priority = 1;
  std::vector<VkDeviceQueueCreateInfo> queues;
  for (const int family : {compute, transfer}) {
    if (!queues.empty() && family == compute) break;
    auto queue = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
    queue.queueFamilyIndex = static_cast<uint32_t>(family);
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    queues.push_back(queue);
  }

  std::vector<const char*> extensions;
  auto f13 = structure<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  auto f12 = structure<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  auto f11 = structure<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  auto f10 = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  auto coop = structure<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  auto groups = structure<VkPhysicalDeviceCooperativeMatrix2FeaturesNV>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV);
  auto executable = structure<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  void** next = &f10.pNext;
  const auto chain = [&](auto& s) {
    *next = &s;
    next = &s.pNext;
  };
  chain(f11), chain(f12), chain(f13);
  const Features& f = p.features;
  f10.features.shaderInt16 = f.i16;
  f10.features.shaderInt64 = f.i64;
  f10.features.shaderFloat64 = f.f64;
  f11.storageBuffer16BitAccess = f.f16;
  f12.shaderFloat16 = f.f16;
  f12.shaderInt8 = f12.storageBuffer8BitAccess = f.i8;
  f12.bufferDeviceAddress = f12.timelineSemaphore = f12.scalarBlockLayout = VK_TRUE;
  f12.vulkanMemoryModel = f.cooperative;
  f13.synchronization2 = f13.maintenance4 = VK_TRUE;
  f13.shaderIntegerDotProduct = VK_TRUE;  // Vulkan 1.3 has it, fast or not
  f13.subgroupSizeControl = f13.computeFullSubgroups = f.subgroup_size;
  if (f.cooperative) {
    chain(coop);
    coop.cooperativeMatrix = VK_TRUE;
    extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  }
  if (f.cooperative_groups) {
    chain(groups);
    groups.cooperativeMatrixWorkgroupScope = groups.cooperativeMatrixFlexibleDimensions = VK_TRUE;
    extensions.push_back(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
  }
  if (options_.capture && f.statistics) {
    chain(executable);
    executable.pipelineExecutableInfo = VK_TRUE;
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  }
  if (p.has("VK_KHR_portability_subset")) extensions.push_back("VK_KHR_portability_subset");  // must be named where offered

  auto info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &f10;
  info.queueCreateInfoCount = static_cast<uint32_t>(queues.size());
  info.pQueueCreateInfos = queues.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  SPARKLE_VK(vkCreateDevice(p.handle, &info, nullptr, &device_), "vkCreateDevice");
  volkLoadDeviceTable(&table_, device_);
  if (instance_->names_steps()) {
    const auto find = [&](const char* name) { return vkGetDeviceProcAddr(device_, name); };
    labels_.begin = reinterpret_cast<PFN_vkCmdBeginDebugUtilsLabelEXT>(find("vkCmdBeginDebugUtilsLabelEXT"));
    labels_.end = reinterpret_cast<PFN_vkCmdEndDebugUtilsLabelEXT>(find("vkCmdEndDebugUtilsLabelEXT"));
    if (!labels_.begin || !labels_.end) labels_ = {};
  }
  const auto queue_of = [&](int family, QueueLock& mutex) {
    Queue queue;
    queue.family = static_cast<uint32_t>(family);
    queue.timestamp_bits = families[queue.family].timestampValidBits;
    queue.mutex = &mutex;
    table_.vkGetDeviceQueue(device_, queue.family, 0, &queue.handle);
    return queue;
  };
  compute_ = queue_of(compute, compute_mutex_);
  transfer_ = transfer == compute ? compute_ : queue_of(transfer, transfer_mutex_);
  two_queues_ = transfer != compute || options_.two_queues;
  return ok();
}

// What Vulkan does not tell of a device is how it was made: that is read from what the caller made it with.
Status Context::borrow_device() {
  const LentDevice& lent = *options_.lent;
  const auto refused = [](const std::string& why) {
    return Error{Reason::device_unusable, "The caller's VkDevice cannot be used: " + why};
  };
  device_ = lent.device;
  volkLoadDeviceTable(&table_, device_);
  if (!table_.vkQueueSubmit2 || !table_.vkCmdPipelineBarrier2 || !table_.vkGetBufferDeviceAddress || !table_.vkWaitSemaphores)
    return refused("it lacks functions of Vulkan 1.3; make its VkInstance with apiVersion VK_API_VERSION_1_3.");
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical().handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical().handle, &count, families.data());
  if (lent.family >= count || !(families[lent.family].queueFlags & VK_QUEUE_COMPUTE_BIT))
    return refused("its queue family " + std::to_string(lent.family) + " does not compute; give a queue of one that does.");
  bool found = false;
  for (uint32_t i = 0; i < lent.made_with->queueCreateInfoCount; ++i) {
    const VkDeviceQueueCreateInfo& made = lent.made_with->pQueueCreateInfos[i];
    if (made.queueFamilyIndex != lent.family || made.flags != 0) continue;
    for (uint32_t q = 0; q < made.queueCount; ++q) {
      VkQueue queue = VK_NULL_HANDLE;
      table_.vkGetDeviceQueue(device_, lent.family, q, &queue);
      found = found || queue == lent.queue;
    }
  }
  if (!found || !lent.queue)
    return refused("the queue is not one of those that it was made with in family " + std::to_string(lent.family) + ".");
  compute_mutex_.also(lent.lock, lent.unlock, lent.user);
  compute_ = {lent.queue, lent.family, families[lent.family].timestampValidBits, &compute_mutex_};
  transfer_ = compute_;
  two_queues_ = options_.two_queues;
  options_.lent->made_with = nullptr;  // not ours to keep
  return ok();
}

Status Context::make_layout() {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(physical().handle, &properties);
  seconds_per_tick_ = static_cast<double>(properties.limits.timestampPeriod) * 1e-9;

  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  auto layout = structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  SPARKLE_VK(table_.vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
  return ok();
}

Status Context::find_memory() {
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical().handle, &memory);
  // What may hold such buffers is the same for all of them.
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = 1024;
  info.usage = kUsage;
  auto asked = structure<VkDeviceBufferMemoryRequirements>(VK_STRUCTURE_TYPE_DEVICE_BUFFER_MEMORY_REQUIREMENTS);
  asked.pCreateInfo = &info;
  auto needs = structure<VkMemoryRequirements2>(VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2);
  table_.vkGetDeviceBufferMemoryRequirements(device_, &asked, &needs);
  // The first type with all of `wanted`, one with `liked` too before others: drivers list the fastest first.
  const auto type_with = [&](VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags liked) {
    int found = -1;
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
      if ((flags & wanted) != wanted || !(needs.memoryRequirements.memoryTypeBits >> i & 1)) continue;
      if ((flags & liked) == liked) return static_cast<int>(i);
      if (found < 0) found = static_cast<int>(i);
    }
    return found;
  };
  constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const bool shared = features().host_sees_memory && !options_.force_staging;
  const int own = type_with(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, shared ? kHost : 0);
  const int staging = type_with(kHost, VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
  if (own < 0 || staging < 0)
    return Error{Reason::device_unusable, "The Vulkan device '" + physical().name +
                                              "' has no memory that kernels and the host can share; use --device cpu."};
  const int record = type_with(kHost | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0);
  host_sees_memory_ = shared && (memory.memoryTypes[own].propertyFlags & kHost) == kHost;
  device_memory_ = static_cast<uint32_t>(own);
  staging_memory_ = static_cast<uint32_t>(staging);
  record_memory_ = static_cast<uint32_t>(record < 0 ? staging : record);
  return ok();
}

Context::~Context() {
  if (layout_) table_.vkDestroyPipelineLayout(device_, layout_, nullptr);
  if (device_ && !options_.lent) table_.vkDestroyDevice(device_, nullptr);
}

}  // namespace sparkle::vulkan
