// Memory of a CUDA device, and pinned memory of the host's that the device reaches by the same addresses. What is given back is
// kept for the next of its size: allocating waits for all that runs.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "backends/backend.h"
#include "backends/cuda/driver/context.h"

namespace sparkle::cuda {

class Memory;

struct Block {
  CuAddress address = 0;
  std::byte* host = nullptr;  // of pinned memory
  int64_t bytes = 0;          // that were allocated
};

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::shared_ptr<Memory> memory, const Block& block, int64_t bytes)
      : memory_(std::move(memory)), block_(block), bytes_(bytes) {}
  // Memory of the caller's; not freed.
  DeviceBuffer(CuAddress address, int64_t bytes) : bytes_(bytes) { block_.address = address; }
  ~DeviceBuffer() override;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  int64_t bytes() const override { return bytes_; }
  std::byte* host() override { return block_.host; }
  bool pinned() const { return block_.host != nullptr; }
  uint64_t address() const override { return block_.address; }

 private:
  std::shared_ptr<Memory> memory_;  // nullptr: not ours to free
  Block block_;
  int64_t bytes_;
};

class Memory : public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Memory();
  // Errors: out_of_memory, naming the bytes.
  Result<std::shared_ptr<DeviceBuffer>> allocate(int64_t bytes, bool pinned);
  void give_back(const Block& block);
  // Of the device's blocks that somebody holds: what lies idle is not counted.
  int64_t device_bytes() const { return device_bytes_; }

 private:
  Result<Block> make(int64_t bytes, bool pinned);
  bool free_idle();
  void destroy(const Block& block);

  std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::multimap<std::pair<bool, int64_t>, Block> free_;  // by pinned and bytes
  int64_t free_bytes_ = 0;
  std::atomic<int64_t> device_bytes_{0};
};

}  // namespace sparkle::cuda
