#include "backends/vulkan/driver/memory.h"

#include <bit>

namespace sparkle::vulkan {
namespace {

constexpr int64_t kMostKept = int64_t{512} << 20;  // bytes of free blocks
// Shaders read whole vectors: the last one may end behind the last element.
constexpr int64_t kMargin = 64;
// Drivers allow some thousand allocations; kernels have a record each, of some hundred bytes.
constexpr int64_t kSlab = 64 << 10, kSmall = 4 << 10, kSmallStep = 256;

// Sizes in steps of an eighth of their power of two, so that blocks fit again.
int64_t rounded(int64_t bytes) {
  const auto wanted = static_cast<uint64_t>(bytes + kMargin);
  const uint64_t step = std::max<uint64_t>(std::bit_floor(wanted) / 8, 256);
  return static_cast<int64_t>((wanted + step - 1) / step * step);
}

}  // namespace

DeviceBuffer::~DeviceBuffer() {
  if (memory_) memory_->give_back(block_);
}

Memory::~Memory() {
  for (const auto& [key, block] : free_) destroy(block);
}

int64_t Memory::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

Result<std::shared_ptr<DeviceBuffer>> Memory::allocate(int64_t bytes, MemoryUse use) {
  const int64_t step = (bytes + kMargin + kSmallStep - 1) / kSmallStep * kSmallStep;
  if (use != MemoryUse::record || step > kSmall) return whole(bytes, use);
  {
    const std::lock_guard lock(mutex_);
    if (auto slab = slab_.lock(); slab && slab_used_ + step <= slab->bytes()) {
      slab_used_ += step;
      return std::make_shared<DeviceBuffer>(std::move(slab), slab_used_ - step, bytes);
    }
  }
  SPARKLE_TRY(fresh, whole(kSlab, use));
  const std::lock_guard lock(mutex_);
  slab_ = fresh, slab_used_ = step;
  return std::make_shared<DeviceBuffer>(std::move(fresh), 0, bytes);
}

Result<std::shared_ptr<DeviceBuffer>> Memory::whole(int64_t bytes, MemoryUse use) {
  const int64_t size = rounded(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = free_.find({use, size}); at != free_.end()) {
      const Block block = at->second;
      free_.erase(at);
      free_bytes_ -= size;
      return std::make_shared<DeviceBuffer>(shared_from_this(), block, bytes);
    }
  }
  auto block = make(size, use);
  // What lies idle is of other sizes, but may be what there is.
  if (!block.ok() && block.error().reason == Reason::out_of_memory && free_idle()) block = make(size, use);
  if (!block.ok()) return block.take_error();
  return std::make_shared<DeviceBuffer>(shared_from_this(), *block, bytes);
}

bool Memory::free_idle() {
  std::multimap<std::pair<MemoryUse, int64_t>, Block> idle;
  {
    const std::lock_guard lock(mutex_);
    idle.swap(free_);
    free_bytes_ = 0;
  }
  for (const auto& [key, block] : idle) destroy(block);
  return !idle.empty();
}

Result<Block> Memory::make(int64_t bytes, MemoryUse use) {
  const uint32_t type = use == MemoryUse::device    ? context_->device_memory()
                        : use == MemoryUse::staging ? context_->staging_memory()
                                                    : context_->record_memory();
  auto block = make_in(type, bytes, use);
  // Where the host sees memory of the device there may be little of it.
  if (!block.ok() && use == MemoryUse::record && type != context_->staging_memory() &&
      block.error().reason == Reason::out_of_memory)
    return make_in(context_->staging_memory(), bytes, use);
  return block;
}

Result<Block> Memory::make_in(uint32_t type, int64_t bytes, MemoryUse use) {
  const auto full = [&](const std::string& why) {
    return Error{Reason::out_of_memory, "The Vulkan device '" + context_->physical().name + "' cannot allocate " +
                                            std::to_string(bytes) + " bytes" + why +
                                            "; give smaller inputs or use --device cpu."};
  };
  const int64_t most = context_->physical().description.limits.max_buffer_bytes;
  if (most > 0 && bytes > most) return full(" (its driver allows " + std::to_string(most) + " at once)");
  {
    const std::lock_guard lock(mutex_);
    allocated_ += bytes;
  }
  const auto& vk = context_->vk();
  Block block;
  block.bytes = bytes;
  block.use = use;
  const auto failed = [&](VkResult result) -> Error {
    destroy(block);
    const bool memory =
        result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_TOO_MANY_OBJECTS;
    return memory ? full("") : error_of(result, "Allocating " + std::to_string(bytes) + " bytes");
  };
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = static_cast<VkDeviceSize>(bytes);
  info.usage = Context::kUsage;
  const uint32_t families[] = {context_->compute().family, context_->transfer().family};
  if (families[0] != families[1]) {
    info.sharingMode = VK_SHARING_MODE_CONCURRENT;
    info.queueFamilyIndexCount = 2;
    info.pQueueFamilyIndices = families;
  }
  VkResult result = vk.vkCreateBuffer(context_->device(), &info, nullptr, &block.buffer);
  if (result != VK_SUCCESS) return failed(result);
  VkMemoryRequirements needs{};
  vk.vkGetBufferMemoryRequirements(context_->device(), block.buffer, &needs);
  auto flags = structure<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto allocation = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocation.pNext = &flags;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = type;
  result = vk.vkAllocateMemory(context_->device(), &allocation, nullptr, &block.memory);
  if (result == VK_SUCCESS) result = vk.vkBindBufferMemory(context_->device(), block.buffer, block.memory, 0);
  if (result != VK_SUCCESS) return failed(result);
  auto address = structure<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  address.buffer = block.buffer;
  block.address = vk.vkGetBufferDeviceAddress(context_->device(), &address);
  if (use != MemoryUse::device || context_->host_sees_memory()) {
    void* host = nullptr;
    result = vk.vkMapMemory(context_->device(), block.memory, 0, VK_WHOLE_SIZE, 0, &host);
    if (result != VK_SUCCESS) return failed(result);
    block.host = static_cast<std::byte*>(host);
  }
  return block;
}

void Memory::destroy(const Block& block) {
  const auto& vk = context_->vk();
  if (block.buffer) vk.vkDestroyBuffer(context_->device(), block.buffer, nullptr);
  if (block.memory) vk.vkFreeMemory(context_->device(), block.memory, nullptr);
  const std::lock_guard lock(mutex_);
  allocated_ -= block.bytes;
}

void Memory::give_back(const Block& block) {
  {
    const std::lock_guard lock(mutex_);
    if (free_bytes_ + block.bytes <= kMostKept) {
      free_.emplace(std::pair{block.use, block.bytes}, block);
      free_bytes_ += block.bytes;
      return;
    }
  }
  destroy(block);
}

}  // namespace sparkle::vulkan
