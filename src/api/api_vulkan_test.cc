// The caller's own Vulkan device, queue and buffers through the public interface: numbers, nothing moved, order on the queue,
// and a sentence for each misuse.
#include <gtest/gtest.h>

#define VK_NO_PROTOTYPES
#define VOLK_IMPLEMENTATION
#include <volk.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <sparkle/sparkle.hpp>
#include <thread>

namespace {

const std::string kModel = SPARKLE_SOURCE_DIR "/models/upscale2x.onnx";
constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

template <class T>
T structure(VkStructureType type) {
  T s{};
  s.sType = type;
  return s;
}

// An instance of the caller's; nullptr where there is no Vulkan.
struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  Instance() {
    if (volkInitialize() != VK_SUCCESS) return;
    auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
    application.apiVersion = VK_API_VERSION_1_3;
    auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    info.pApplicationInfo = &application;
    if (vkCreateInstance(&info, nullptr, &handle) != VK_SUCCESS) return;
    volkLoadInstance(handle);
    uint32_t count = 1;
    if (vkEnumeratePhysicalDevices(handle, &count, &physical) < 0 || count == 0) return;
    VkPhysicalDeviceProperties properties{};
    vkGetPhysicalDeviceProperties(physical, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_3) physical = VK_NULL_HANDLE;
  }
  ~Instance() {
    if (handle) vkDestroyInstance(handle, nullptr);
  }
};

// A device of the caller's with what it was made with, one queue, and buffers that the host sees.
class CallersDevice {
 public:
  explicit CallersDevice(const Instance& instance, VkBool32 VkPhysicalDeviceVulkan12Features::* without = nullptr)
      : instance_(instance) {
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(instance.physical, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(instance.physical, &count, families.data());
    while (family < count && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
    f12_.bufferDeviceAddress = f12_.timelineSemaphore = f12_.scalarBlockLayout = VK_TRUE;
    f12_.shaderInt8 = f12_.storageBuffer8BitAccess = VK_TRUE;
    f13_.synchronization2 = f13_.maintenance4 = VK_TRUE;
    if (without) f12_.*without = VK_FALSE;
    f12_.pNext = &f13_;
    queue_info_.queueFamilyIndex = family;
    queue_info_.queueCount = 1;
    queue_info_.pQueuePriorities = &priority_;
    info.pNext = &f12_;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info_;
    EXPECT_EQ(vkCreateDevice(instance.physical, &info, nullptr, &handle), VK_SUCCESS);
    vkGetDeviceQueue(handle, family, 0, &queue);
  }
  ~CallersDevice() {
    for (const Made& m : made_) {
      vkDestroyBuffer(handle, m.buffer, nullptr);
      vkFreeMemory(handle, m.memory, nullptr);
    }
    if (pool_) vkDestroyCommandPool(handle, pool_, nullptr);
    vkDestroyDevice(handle, nullptr);
  }
  sparkle_vulkan_options options() {
    sparkle_vulkan_options o{};
    o.instance = instance_.handle;
    o.physical_device = instance_.physical;
    o.device = handle;
    o.queue = queue;
    o.queue_family = family;
    o.device_create_info = &info;
    return o;
  }

  struct Made {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    std::byte* host = nullptr;
  };
  Made make(VkDeviceSize bytes, VkBufferUsageFlags usage = kUsage) {
    Made m;
    auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    info.size = bytes;
    info.usage = usage;
    EXPECT_EQ(vkCreateBuffer(handle, &info, nullptr, &m.buffer), VK_SUCCESS);
    VkMemoryRequirements needs{};
    vkGetBufferMemoryRequirements(handle, m.buffer, &needs);
    VkPhysicalDeviceMemoryProperties memory{};
    vkGetPhysicalDeviceMemoryProperties(instance_.physical, &memory);
    constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while ((memory.memoryTypes[type].propertyFlags & kHost) != kHost || !(needs.memoryTypeBits >> type & 1)) ++type;
    auto flags = structure<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    auto allocation = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
    allocation.pNext = &flags;
    allocation.allocationSize = needs.size;
    allocation.memoryTypeIndex = type;
    EXPECT_EQ(vkAllocateMemory(handle, &allocation, nullptr, &m.memory), VK_SUCCESS);
    EXPECT_EQ(vkBindBufferMemory(handle, m.buffer, m.memory, 0), VK_SUCCESS);
    EXPECT_EQ(vkMapMemory(handle, m.memory, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void**>(&m.host)), VK_SUCCESS);
    made_.push_back(m);
    return m;
  }
  sparkle_vulkan_buffer described(const Made& m, int64_t bytes, int64_t offset = 0) {
    sparkle_vulkan_buffer b{};
    b.device = handle;
    b.buffer = reinterpret_cast<uint64_t>(m.buffer);
    b.usage = kUsage;
    b.offset = offset;
    b.bytes = bytes;
    return b;
  }
  // Submits a copy with barriers on both sides, and waits for nothing.
  void copy(VkBuffer from, VkBuffer to, VkDeviceSize bytes, VkFence fence = VK_NULL_HANDLE) {
    if (!pool_) {
      auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
      pool.queueFamilyIndex = family;
      EXPECT_EQ(vkCreateCommandPool(handle, &pool, nullptr, &pool_), VK_SUCCESS);
    }
    VkCommandBuffer commands = VK_NULL_HANDLE;
    auto allocate = structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    EXPECT_EQ(vkAllocateCommandBuffers(handle, &allocate, &commands), VK_SUCCESS);
    auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    EXPECT_EQ(vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
    const VkBufferCopy region{0, 0, bytes};
    vkCmdCopyBuffer(commands, from, to, 1, &region);
    auto memory = structure<VkMemoryBarrier2>(VK_STRUCTURE_TYPE_MEMORY_BARRIER_2);
    memory.srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT;
    memory.srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT;
    memory.dstStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_HOST_BIT;
    memory.dstAccessMask = VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_HOST_READ_BIT;
    auto dependency = structure<VkDependencyInfo>(VK_STRUCTURE_TYPE_DEPENDENCY_INFO);
    dependency.memoryBarrierCount = 1;
    dependency.pMemoryBarriers = &memory;
    vkCmdPipelineBarrier2(commands, &dependency);
    EXPECT_EQ(vkEndCommandBuffer(commands), VK_SUCCESS);
    auto command = structure<VkCommandBufferSubmitInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO);
    command.commandBuffer = commands;
    auto submit = structure<VkSubmitInfo2>(VK_STRUCTURE_TYPE_SUBMIT_INFO_2);
    submit.commandBufferInfoCount = 1;
    submit.pCommandBufferInfos = &command;
    EXPECT_EQ(vkQueueSubmit2(queue, 1, &submit, fence), VK_SUCCESS);
  }

  VkDevice handle = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t family = 0;
  VkDeviceCreateInfo info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);

 private:
  const Instance& instance_;
  VkPhysicalDeviceVulkan12Features f12_ =
      structure<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VkPhysicalDeviceVulkan13Features f13_ =
      structure<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
  VkDeviceQueueCreateInfo queue_info_ = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  float priority_ = 1;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<Made> made_;
};

class VulkanApi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!instance_.physical) GTEST_SKIP() << "no Vulkan 1.3 device";
  }
  static sparkle::Tensor picture(unsigned seed) {
    sparkle::Tensor x(sparkle::Type::f32, {1, 3, 9, 12});
    for (int64_t i = 0; i < x.elements(); ++i)
      x.data<float>()[i] = static_cast<float>((static_cast<unsigned>(i) * 2654435761u + seed) >> 8 & 255) / 255;
    return x;
  }
  static sparkle::Tensor expected(const sparkle::Tensor& x) {
    return sparkle::Session(sparkle::Device(), kModel).run({x}).at(0);
  }
  static void expect_near(const void* got, const sparkle::Tensor& wanted, const char* what) {
    const auto* values = static_cast<const float*>(got);
    for (int64_t i = 0; i < wanted.elements(); ++i)
      ASSERT_NEAR(values[i], wanted.data<float>()[i], 1e-5) << what << " at " << i;
  }
  // The status of a call that must fail with these words.
  template <class F>
  static void expect_refused(F&& call, sparkle_status status, const std::string& words) {
    try {
      call();
      ADD_FAILURE() << "not refused: " << words;
    } catch (const sparkle::Exception& e) {
      EXPECT_EQ(e.status(), status) << e.what();
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  }
  static constexpr int64_t kIn = 3 * 9 * 12 * 4, kOut = 4 * kIn;
  Instance instance_;
};

TEST_F(VulkanApi, RunsOnBuffersOfTheCallerAndMovesNothing) {
  CallersDevice callers(instance_);
  const auto in = callers.make(kIn + 64), out = callers.make(kOut + 64);
  std::memset(out.host, 0x7f, kOut + 64);
  const auto x = picture(1), wanted = expected(x);
  std::memcpy(in.host + 64, x.data(), kIn);
  {
    const sparkle::Device device(callers.options());
    const sparkle::Session session(device, kModel);
    const sparkle::DeviceTensor from(sparkle::Type::f32, x.shape(), sparkle::Buffer(device, callers.described(in, kIn, 64)));
    const sparkle::DeviceTensor to(sparkle::Type::f32, wanted.shape(), sparkle::Buffer(device, callers.described(out, kOut)));
    session.run_on_device({from}, {to});  // packs weights, which is an upload
    const sparkle_traffic before = device.traffic();
    for (int i = 0; i < 3; ++i) session.run_on_device({from}, {to});
    const sparkle_traffic after = device.traffic();
    EXPECT_EQ(after.copies, before.copies);
    EXPECT_EQ(after.host_transfers, before.host_transfers);
    expect_near(out.host, wanted, "the caller's buffer");
    for (int i = 0; i < 64; ++i) ASSERT_EQ(out.host[kOut + i], std::byte{0x7f});  // nothing behind the tensor is touched

    // Results in new tensors, the input of the next run among the caller's commands.
    const sparkle::DeviceTensor made = session.run_on_device({from}).at(0);
    EXPECT_EQ(device.traffic().host_transfers, before.host_transfers);
    EXPECT_EQ(made.shape(), wanted.shape());
    expect_near(made.download().data(), wanted, "a new tensor");
    EXPECT_EQ(device.traffic().host_transfers, before.host_transfers + 1);
    uint64_t handle = 0, address = 0;
    int64_t offset = -1;
    ASSERT_EQ(sparkle_buffer_vulkan(made.buffer().c(), &handle, &offset, &address), SPARKLE_OK);
    EXPECT_TRUE(handle != 0 && offset == 0 && address % 16 == 0);
    ASSERT_EQ(sparkle_buffer_vulkan(from.buffer().c(), &handle, &offset, nullptr), SPARKLE_OK);
    EXPECT_EQ(handle, reinterpret_cast<uint64_t>(in.buffer));
    EXPECT_EQ(offset, 64);

    // Uploads into and downloads from a part of the caller's buffer.
    sparkle::DeviceTensor part = from;
    part.upload(picture(2));
    EXPECT_EQ(std::memcmp(in.host + 64, picture(2).data(), kIn), 0);
    EXPECT_EQ(std::memcmp(part.download().data(), picture(2).data(), kIn), 0);
  }
  // The handles are still the caller's.
  callers.copy(out.buffer, in.buffer, 16);
  EXPECT_EQ(vkDeviceWaitIdle(callers.handle), VK_SUCCESS);
}

// What the caller submits to the same queue before and after a run needs no wait in between.
TEST_F(VulkanApi, FollowsTheOrderOfTheQueue) {
  CallersDevice callers(instance_);
  const sparkle::Device device(callers.options());
  const sparkle::Session session(device, kModel);
  const auto source = callers.make(kIn), in = callers.make(kIn), out = callers.make(kOut), result = callers.make(kOut);
  const sparkle::DeviceTensor from(sparkle::Type::f32, {1, 3, 9, 12}, sparkle::Buffer(device, callers.described(in, kIn)));
  const sparkle::DeviceTensor to(sparkle::Type::f32, {1, 3, 18, 24}, sparkle::Buffer(device, callers.described(out, kOut)));
  session.run_on_device({from}, {to});
  auto info = structure<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  VkFence fence = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateFence(callers.handle, &info, nullptr, &fence), VK_SUCCESS);
  for (unsigned seed = 3; seed < 6; ++seed) {
    const auto x = picture(seed);
    std::memcpy(source.host, x.data(), kIn);
    callers.copy(source.buffer, in.buffer, kIn);
    const uint64_t token = session.submit_on_device({from}, {to});
    callers.copy(out.buffer, result.buffer, kOut, fence);
    ASSERT_EQ(vkWaitForFences(callers.handle, 1, &fence, VK_TRUE, UINT64_MAX), VK_SUCCESS);
    EXPECT_TRUE(device.done(token) && device.wait(token));
    expect_near(result.host, expected(x), "behind the run");
    vkResetFences(callers.handle, 1, &fence);
  }
  vkDestroyFence(callers.handle, fence, nullptr);
}

TEST_F(VulkanApi, TakesTheCallersLockAroundTheQueue) {
  CallersDevice callers(instance_);
  struct Lock {
    std::mutex mutex;
    std::atomic<int> inside{0}, taken{0}, broken{0};
  } lock;
  sparkle_vulkan_options options = callers.options();
  options.user = &lock;
  options.lock_queue = [](void* user) {
    auto* l = static_cast<Lock*>(user);
    l->mutex.lock();
    l->broken += ++l->inside != 1;
    ++l->taken;
  };
  options.unlock_queue = [](void* user) {
    auto* l = static_cast<Lock*>(user);
    --l->inside;
    l->mutex.unlock();
  };
  const auto a = callers.make(64), b = callers.make(64);
  {
    const sparkle::Device device(options);
    const sparkle::Session session(device, kModel);
    const auto x = picture(7), wanted = expected(x);
    const sparkle::DeviceTensor from(device, x);
    expect_near(session.run_on_device({from}).at(0).download().data(), wanted, "first");
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 4; ++i) expect_near(session.run_on_device({from}).at(0).download().data(), wanted, "a thread");
      });
    for (int i = 0; i < 20; ++i) {
      options.lock_queue(&lock);
      callers.copy(a.buffer, b.buffer, 64);
      options.unlock_queue(&lock);
    }
    for (std::thread& t : threads) t.join();
  }
  EXPECT_GE(lock.taken, 20 + 2 * 4 * 2);  // a run and a download each
  EXPECT_EQ(lock.broken, 0);
  vkDeviceWaitIdle(callers.handle);
}

TEST_F(VulkanApi, RefusesDevicesWithASentence) {
  CallersDevice callers(instance_);
  const auto open = [&](auto&& change) {
    return [&, change] {
      sparkle_vulkan_options options = callers.options();
      change(options);
      sparkle::Device{options};
    };
  };
  expect_refused(open([](auto& o) { o.queue = nullptr; }), SPARKLE_BAD_USAGE, "queue is NULL");
  expect_refused(open([](auto& o) { o.device_create_info = nullptr; }), SPARKLE_BAD_USAGE, "device_create_info is NULL");
  expect_refused(open([](auto& o) { o.lock_queue = [](void*) {}; }), SPARKLE_BAD_USAGE, "both lock_queue and unlock_queue");
  expect_refused(open([](auto& o) { o.queue_family = 77; }), SPARKLE_DEVICE_UNUSABLE, "family 77 does not compute");
  expect_refused(open([](auto& o) { o.queue = &o; }), SPARKLE_DEVICE_UNUSABLE, "the queue is not one");
  expect_refused(open([](auto& o) { o.physical_device = &o; }), SPARKLE_DEVICE_UNUSABLE,
                 "is not one of the caller's VkInstance");
  sparkle_vulkan_options short_one = callers.options();
  short_one.size = 8;
  sparkle_device* device = nullptr;
  EXPECT_EQ(sparkle_vulkan_device_open(&short_one, nullptr, &device), SPARKLE_BAD_USAGE);
  EXPECT_EQ(sparkle_vulkan_device_open(nullptr, nullptr, &device), SPARKLE_BAD_USAGE);
  EXPECT_EQ(device, nullptr);
  CallersDevice lacks(instance_, &VkPhysicalDeviceVulkan12Features::scalarBlockLayout);
  expect_refused([&] { sparkle::Device{lacks.options()}; }, SPARKLE_DEVICE_UNUSABLE, "without the feature scalarBlockLayout");
}

TEST_F(VulkanApi, RefusesBuffersAndTensorsWithASentence) {
  CallersDevice callers(instance_), others(instance_);
  const sparkle::Device device(callers.options()), cpu;
  const sparkle::Session session(device, kModel);
  const auto in = callers.make(kIn), out = callers.make(kOut);
  const auto wrap = [&](auto&& change) {
    return [&, change] {
      sparkle_vulkan_buffer b = callers.described(in, kIn);
      change(b);
      sparkle::Buffer(device, b);
    };
  };
  expect_refused(wrap([](auto& b) { b.bytes = kIn * 100; }), SPARKLE_BAD_USAGE, "are not inside");
  expect_refused(wrap([](auto& b) { b.offset = -4; }), SPARKLE_BAD_USAGE, "are not inside");
  expect_refused(wrap([](auto& b) { b.offset = 4, b.bytes = 16; }), SPARKLE_BAD_USAGE, "multiple of 16");
  expect_refused(wrap([](auto& b) { b.usage &= ~VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT; }), SPARKLE_BAD_USAGE,
                 "without VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT");
  expect_refused(wrap([&](auto& b) { b.device = others.handle; }), SPARKLE_BAD_USAGE, "another VkDevice");
  expect_refused(wrap([](auto& b) { b.buffer = 0; }), SPARKLE_BAD_USAGE, "VK_NULL_HANDLE");
  expect_refused([&] { sparkle::Buffer(cpu, callers.described(in, kIn)); }, SPARKLE_DEVICE_UNUSABLE, "not one of Vulkan's");

  using sparkle::DeviceTensor;
  using sparkle::Type;
  const sparkle::Buffer x(device, callers.described(in, kIn)), y(device, callers.described(out, kOut));
  const DeviceTensor from(Type::f32, {1, 3, 9, 12}, x), to(Type::f32, {1, 3, 18, 24}, y);
  const auto run = [&](const DeviceTensor& a, const DeviceTensor& b) { return [&, a, b] { session.run_on_device({a}, {b}); }; };
  expect_refused(run(DeviceTensor(Type::i32, {1, 3, 9, 12}, x), to), SPARKLE_BAD_INPUT, "is f32 in the model");
  expect_refused(run(from, DeviceTensor(Type::i32, {1, 3, 18, 24}, y)), SPARKLE_BAD_INPUT, "its place is i32");
  expect_refused(run(from, DeviceTensor(Type::f32, {1, 3, 18, 25}, y)), SPARKLE_BAD_INPUT, "its place is f32 1x3x18x25");
  expect_refused(run(from, DeviceTensor(Type::f32, {1, 3, 18, 24}, x)), SPARKLE_BAD_INPUT, "must hold");
  expect_refused(run(from, DeviceTensor(cpu, Type::f32, {1, 3, 18, 24})), SPARKLE_BAD_USAGE, "belongs to another device");
  const sparkle::Buffer large(device, callers.described(out, kOut));
  const sparkle::Buffer within(device, callers.described(out, kIn, 1024));
  expect_refused(run(DeviceTensor(Type::f32, {1, 3, 9, 12}, within), DeviceTensor(Type::f32, {1, 3, 18, 24}, large)),
                 SPARKLE_BAD_USAGE, "share memory");
  expect_refused([&] { session.run_on_device({}, {to}); }, SPARKLE_BAD_INPUT, "takes 1 inputs");
  expect_refused([&] { session.run_on_device({from}, {}); }, SPARKLE_BAD_USAGE, "1 outputs");
  session.run_on_device({from}, {to});  // and it runs after all that
}

}  // namespace
