#include "backends/vulkan/driver/memory.h"

#include <bit>

namespace sparkle::vulkan {
namespace {

constexpr int64_t kMostKept = int64_t{512} << 20;  // bytes of free blocks
// Shaders read whole vectors: the last one may end behind the last element.
constexpr int64_t kMargin = 64;

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
  SPARKLE_TRY(block, make(size, use));
  return std::make_shared<DeviceBuffer>(shared_from_this(), block, bytes);
}

Result<Block> Memory::make(int64_t bytes, MemoryUse use) {
  const auto full = [&](const std::string& why) {
    return Error{Reason::out_of_memory, "The Vulkan device '" + context_->physical().name + "' cannot allocate " +
                                            std::to_string(bytes) + " bytes" + why +
                                            "; give smaller inputs or use --device cpu."};
  };
  const int64_t most = context_->physical().description.limits.max_buffer_bytes;
  if (most > 0 && bytes > most) return full(" (its driver allows " + std::to_string(most) + " at once)");
  {
    const std::lock_guard lock(mutex_);
    const int64_t faulty = context_->options().faults.memory_bytes;
    if (faulty > 0 && allocated_ + bytes > faulty) return full("");
    allocated_ += bytes;
  }
  const auto& vk = context_->vk();
  Block block;
  block.bytes = bytes;
  block.use = use;
  const auto failed = [&](VkResult result) -> Error {
    destroy(block);
    const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
    return memory ? full("") : error_of(result, "Allocating " + std::to_string(bytes) + " bytes");
  };
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = static_cast<VkDeviceSize>(bytes);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
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
  allocation.memoryTypeIndex = use == MemoryUse::device    ? context_->device_memory()
                               : use == MemoryUse::staging ? context_->staging_memory()
                                                           : context_->record_memory();
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
