#include "backends/cuda/driver/memory.h"

#include <algorithm>
#include <bit>

#include "base/round_up.h"

namespace sparkle::cuda {
namespace {

constexpr int64_t kMostKept = int64_t{256} << 20;
// Sizes in steps of an eighth of their power of two, so that blocks fit again; drivers allocate in 512 bytes.
int64_t rounded(int64_t bytes) {
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(bytes, 1));
  return rounded_up(static_cast<int64_t>(wanted), static_cast<int64_t>(std::max<uint64_t>(std::bit_floor(wanted) / 8, 512)));
}

}  // namespace

DeviceBuffer::~DeviceBuffer() {
  if (memory_) memory_->give_back(block_);
}

Memory::~Memory() { free_idle(); }

Result<std::shared_ptr<DeviceBuffer>> Memory::allocate(int64_t bytes, bool pinned) {
  if (bytes < 0 || bytes > INT64_MAX / 2)
    return Error{Reason::size_overflow, "A buffer of " + std::to_string(bytes) + " bytes cannot be addressed."};
  const int64_t size = rounded(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = free_.find({pinned, size}); at != free_.end()) {
      const Block block = at->second;
      free_.erase(at);
      free_bytes_ -= size;
      if (!pinned) device_bytes_ += size;
      return std::make_shared<DeviceBuffer>(shared_from_this(), block, bytes);
    }
  }
  auto block = make(size, pinned);
  // What lies idle is of other sizes, but may be what there is.
  if (!block.ok() && block.error().reason == Reason::out_of_memory && free_idle()) block = make(size, pinned);
  if (!block.ok()) return block.take_error();
  if (!pinned) device_bytes_ += size;
  return std::make_shared<DeviceBuffer>(shared_from_this(), *block, bytes);
}

bool Memory::free_idle() {
  std::multimap<std::pair<bool, int64_t>, Block> idle;
  {
    const std::lock_guard lock(mutex_);
    idle.swap(free_);
    free_bytes_ = 0;
  }
  for (const auto& [key, block] : idle) destroy(block);
  return !idle.empty();
}

Result<Block> Memory::make(int64_t bytes, bool pinned) {
  const Driver& d = context_->driver();
  const Current current(*context_);
  Block block;
  block.bytes = bytes;
  void* host = nullptr;
  const CuResult result = pinned ? d.host_allocate(&host, static_cast<size_t>(bytes), kHostAllocPortable)
                                 : d.memory_allocate(&block.address, static_cast<size_t>(bytes));
  if (result == CuResult::out_of_memory)
    return Error{Reason::out_of_memory,
                 (pinned ? "The driver cannot pin " : "The CUDA device '" + context_->device().name + "' cannot allocate ") +
                     std::to_string(bytes) + " bytes; give smaller inputs or use --device cpu."};
  SPARKLE_CU(d, result, "Allocating " + std::to_string(bytes) + " bytes");
  if (!pinned) return block;
  block.host = static_cast<std::byte*>(host);
  if (const CuResult r = d.host_address(&block.address, host, 0); r != CuResult::success) {
    destroy(block);
    return d.error_of(r, "cuMemHostGetDevicePointer");
  }
  return block;
}

void Memory::destroy(const Block& block) {
  const Current current(*context_);
  if (block.host) context_->driver().host_free(block.host);
  else context_->driver().memory_free(block.address);
}

void Memory::give_back(const Block& block) {
  if (!block.host) device_bytes_ -= block.bytes;
  {
    const std::lock_guard lock(mutex_);
    if (free_bytes_ + block.bytes <= kMostKept) {
      free_.emplace(std::pair{block.host != nullptr, block.bytes}, block);
      free_bytes_ += block.bytes;
      return;
    }
  }
  destroy(block);
}

}  // namespace sparkle::cuda
