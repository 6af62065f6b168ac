// Memory of a Vulkan device: buffers that shaders reach by address. What is given back is kept for the next of its size.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "backends/backend.h"
#include "backends/vulkan/driver/context.h"

namespace sparkle::vulkan {

class Memory;

// What a block is for: kernels' data; uploads and downloads; small records that the host writes once and shaders read.
enum class MemoryUse : uint8_t { device, staging, record };

// A VkBuffer with memory of its own.
struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  std::byte* host = nullptr;  // where the host sees it
  int64_t bytes = 0;          // that were allocated
  MemoryUse use = MemoryUse::device;
};

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::shared_ptr<Memory> memory, const Block& block, int64_t bytes)
      : memory_(std::move(memory)), block_(block), bytes_(bytes) {}
  // A part of a buffer of the caller's, from `offset` on, where `address` leads; not freed.
  DeviceBuffer(VkBuffer buffer, VkDeviceAddress address, int64_t bytes, int64_t offset) : bytes_(bytes), offset_(offset) {
    block_.buffer = buffer, block_.address = address;
  }
  // A part of another one of ours, which stays as long as its parts.
  DeviceBuffer(std::shared_ptr<DeviceBuffer> whole, int64_t from, int64_t bytes)
      : block_(whole->block_), whole_(std::move(whole)), bytes_(bytes), offset_(from) {
    block_.address += static_cast<VkDeviceAddress>(from), block_.host += from;
  }
  ~DeviceBuffer() override;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  int64_t bytes() const override { return bytes_; }
  std::byte* host() override { return block_.host; }
  VkBuffer buffer() const { return block_.buffer; }
  int64_t offset() const { return offset_; }  // of the first byte in buffer()
  VkDeviceAddress address() const override { return block_.address; }

 private:
  std::shared_ptr<Memory> memory_;  // nullptr: not ours to free
  Block block_;
  std::shared_ptr<DeviceBuffer> whole_;
  int64_t bytes_, offset_ = 0;
};

class Memory : public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Memory();
  // Errors: out_of_memory, naming the bytes.
  Result<std::shared_ptr<DeviceBuffer>> allocate(int64_t bytes, MemoryUse use);
  void give_back(const Block& block);
  int64_t allocated_bytes() const;

 private:
  Result<std::shared_ptr<DeviceBuffer>> whole(int64_t bytes, MemoryUse use);
  Result<Block> make(int64_t bytes, MemoryUse use);
  Result<Block> make_in(uint32_t type, int64_t bytes, MemoryUse use);
  bool free_idle();
  void destroy(const Block& block);

  std::shared_ptr<Context> context_;
  mutable std::mutex mutex_;
  std::multimap<std::pair<MemoryUse, int64_t>, Block> free_;
  int64_t free_bytes_ = 0, allocated_ = 0;
  std::weak_ptr<DeviceBuffer> slab_;  // that small records are cut from, one behind the other; theirs as long as there are some
  int64_t slab_used_ = 0;
};

}  // namespace sparkle::vulkan
