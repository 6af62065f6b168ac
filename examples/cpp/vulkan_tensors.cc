// vulkan_tensors MODEL: runs a model with one fp32 input and output on a Vulkan device of this program's own, from a VkBuffer
// of its own into another: Sparkle copies nothing. Open sizes are taken as 8; the input is all ones.
#include <vulkan/vulkan.h>

#include <cstdio>
#include <sparkle/sparkle.hpp>

namespace {

void check(VkResult result, const char* what) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(what) + " failed");
}

template <class T>
T structure(VkStructureType type) {
  T s{};
  s.sType = type;
  return s;
}

struct Program {
  VkInstance instance{};
  VkPhysicalDevice physical{};
  VkDevice device{};
  VkQueue queue{};
  uint32_t family = 0;

  // What Sparkle needs of the device is what `features` switches on.
  VkPhysicalDeviceVulkan13Features f13 =
      structure<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  VkPhysicalDeviceVulkan12Features f12 =
      structure<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VkDeviceQueueCreateInfo queues = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  VkDeviceCreateInfo made_with = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  float priority = 1;

  Program() {
    auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
    application.apiVersion = VK_API_VERSION_1_3;
    auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    info.pApplicationInfo = &application;
    check(vkCreateInstance(&info, nullptr, &instance), "vkCreateInstance");
    uint32_t count = 1;
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) throw std::runtime_error("no Vulkan device");
    count = 16;
    VkQueueFamilyProperties families[16];
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    while (family + 1 < count && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;

    f12.bufferDeviceAddress = f12.timelineSemaphore = f12.scalarBlockLayout = VK_TRUE;
    f13.synchronization2 = f13.maintenance4 = VK_TRUE;
    f12.pNext = &f13;
    queues.queueFamilyIndex = family;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    made_with.pNext = &f12;
    made_with.queueCreateInfoCount = 1;
    made_with.pQueueCreateInfos = &queues;
    check(vkCreateDevice(physical, &made_with, nullptr, &device), "vkCreateDevice");
    vkGetDeviceQueue(device, family, 0, &queue);
  }
  ~Program() {
    if (device) vkDestroyDevice(device, nullptr);
    if (instance) vkDestroyInstance(instance, nullptr);
  }
};

// A buffer that the host sees too, so that this program can fill and read it.
struct OwnBuffer {
  VkDevice device;
  VkBuffer buffer{};
  VkDeviceMemory memory{};
  float* host = nullptr;
  static constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

  OwnBuffer(const Program& p, size_t bytes) : device(p.device) {
    auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    info.size = bytes;
    info.usage = kUsage;
    check(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(p.physical, &types);
    constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while ((types.memoryTypes[type].propertyFlags & kHost) != kHost || !(needs.memoryTypeBits >> type & 1)) ++type;
    auto flags = structure<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    auto allocation = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
    allocation.pNext = &flags;
    allocation.allocationSize = needs.size;
    allocation.memoryTypeIndex = type;
    check(vkAllocateMemory(device, &allocation, nullptr, &memory), "vkAllocateMemory");
    check(vkBindBufferMemory(device, buffer, memory, 0), "vkBindBufferMemory");
    check(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void**>(&host)), "vkMapMemory");
  }
  ~OwnBuffer() {
    vkDestroyBuffer(device, buffer, nullptr);
    vkFreeMemory(device, memory, nullptr);
  }
  OwnBuffer(const OwnBuffer&) = delete;
  OwnBuffer& operator=(const OwnBuffer&) = delete;
};

void run(const char* model) {
  Program program;
  sparkle_vulkan_options vulkan{};
  vulkan.instance = program.instance;
  vulkan.physical_device = program.physical;
  vulkan.device = program.device;
  vulkan.queue = program.queue;
  vulkan.queue_family = program.family;
  vulkan.device_create_info = &program.made_with;
  const sparkle::Device device(vulkan);
  const sparkle::Session session(device, model);

  sparkle::Shape shape = session.inputs().at(0).shape;
  for (int64_t& size : shape) size = size < 0 ? 8 : size;
  const sparkle::Tensor like(sparkle::Type::f32, shape, nullptr);
  const sparkle::Tensor result = session.output_shapes({like}).at(0);
  const OwnBuffer in(program, like.bytes()), out(program, result.bytes());
  for (int64_t i = 0; i < like.elements(); ++i) in.host[i] = 1;

  const auto tensor = [&](const sparkle::Tensor& t, const OwnBuffer& memory) {
    sparkle_vulkan_buffer lent{};
    lent.device = program.device;
    lent.buffer = reinterpret_cast<uint64_t>(memory.buffer);
    lent.usage = OwnBuffer::kUsage;
    lent.bytes = static_cast<int64_t>(t.bytes());
    return sparkle::DeviceTensor(t.type(), t.shape(), sparkle::Buffer(device, lent));
  };
  const sparkle::DeviceTensor x = tensor(like, in), y = tensor(result, out);
  session.run_on_device({x}, {y});  // packs the weights
  const sparkle_traffic before = device.traffic();
  session.run_on_device({x}, {y});
  const sparkle_traffic after = device.traffic();
  std::printf("first of %lld results: %g; %llu copies, %llu transfers\n", static_cast<long long>(result.elements()),
              static_cast<double>(out.host[0]), static_cast<unsigned long long>(after.copies - before.copies),
              static_cast<unsigned long long>(after.host_transfers - before.host_transfers));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: vulkan_tensors MODEL\n"), 2;
  run(argv[1]);
  return 0;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "%s\n", e.what()), 2;
}
