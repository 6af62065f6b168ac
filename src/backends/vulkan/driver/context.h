// Context: a Vulkan device opened for computing: its functions, queues, features that are switched on, and memory types.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/vulkan/driver/instance.h"

namespace sparkle::vulkan {

// Queues take one caller at a time: their lock is ours, and the caller's too where the queue is the caller's.
class QueueLock {
 public:
  void also(void (*lock)(void*), void (*unlock)(void*), void* user) { lock_ = lock, unlock_ = unlock, user_ = user; }
  void lock() {
    mutex_.lock();
    if (lock_) lock_(user_);
  }
  void unlock() {
    if (unlock_) unlock_(user_);
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  void (*lock_)(void*) = nullptr;
  void (*unlock_)(void*) = nullptr;
  void* user_ = nullptr;
};

// A device that the caller has opened on an Instance::lent(); it stays the caller's and outlives the Context.
struct LentDevice {
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t family = 0;
  const VkDeviceCreateInfo* made_with = nullptr;  // read while the context is opened
  void (*lock)(void*) = nullptr;                  // around each submission to the queue
  void (*unlock)(void*) = nullptr;
  void* user = nullptr;
};

struct ContextOptions {
  bool validation = false;
  bool force_staging = false;  // the host never sees device memory, as on cards of their own
  bool one_queue = false;      // copies go where kernels go even where there is a queue for copies
  bool two_queues = false;     // copies go the way of a queue for copies even where that is the kernels' own
  bool capture = false;        // keep what the driver made of each shader: statistics and machine code
  bool compile_only = false;   // pipelines alone, for drivers without memory behind them
  std::string cache_folder;    // of compiled pipelines; empty: the user's cache folder
  bool cache = true;
  // Kernels are tried before their first use on a driver, `try_timeout` at most each; `try_elsewhere` does it in a process of
  // its own: it is handed a line per kernel, which `try_lines` takes there. A kernel during whose self-test a process ended is
  // denied, unless a `sandbox` process tries it once more.
  bool try_first = true;
  bool sandbox = false;
  std::chrono::nanoseconds try_timeout = std::chrono::seconds(20);
  std::chrono::nanoseconds give_up_after = std::chrono::seconds(20);  // on a kernel that has timed out
  std::function<void(const std::string& lines)> try_elsewhere;
  std::optional<LentDevice> lent;
};

struct Queue {
  VkQueue handle = VK_NULL_HANDLE;
  uint32_t family = 0;
  uint32_t timestamp_bits = 0;
  QueueLock* mutex = nullptr;  // two Queues may be one
};

// Functions that name a part of a command buffer, as Nsight, RenderDoc and the drivers' own profilers show it; nullptr where
// the instance has none.
struct StepLabels {
  PFN_vkCmdBeginDebugUtilsLabelEXT begin = nullptr;
  PFN_vkCmdEndDebugUtilsLabelEXT end = nullptr;
};

class Context {
 public:
  static Result<std::shared_ptr<Context>> open(std::shared_ptr<Instance> instance, size_t index, const ContextOptions& options);
  // A device that is not here: what kernel factories ask of one, and nothing to run on.
  static std::shared_ptr<Context> described(PhysicalDevice device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const PhysicalDevice& physical() const { return instance_ ? instance_->devices()[index_] : described_; }
  const Instance& instance() const { return *instance_; }
  const Features& features() const { return physical().features; }
  const ContextOptions& options() const { return options_; }
  const VolkDeviceTable& vk() const { return table_; }
  const StepLabels& labels() const { return labels_; }
  VkDevice device() const { return device_; }
  const Queue& compute() const { return compute_; }
  const Queue& transfer() const { return transfer_; }  // the compute queue where there is no other
  bool two_queues() const { return two_queues_; }
  double seconds_per_tick() const { return seconds_per_tick_; }
  VkPipelineLayout layout() const { return layout_; }  // of all kernels: 128 bytes pushed, nothing bound
  bool host_sees_memory() const { return host_sees_memory_; }
  // Of kernels' data and of what is copied to and from it.
  static constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  // The memory types for kernels, for uploads and downloads, and for records.
  uint32_t device_memory() const { return device_memory_; }
  uint32_t staging_memory() const { return staging_memory_; }
  uint32_t record_memory() const { return record_memory_; }

 private:
  Context() = default;
  Status open_device();
  Status borrow_device();
  Status make_layout();
  Status find_memory();

  std::shared_ptr<Instance> instance_;
  size_t index_ = 0;
  PhysicalDevice described_;  // where there is no instance
  ContextOptions options_;
  VolkDeviceTable table_{};
  StepLabels labels_;
  VkDevice device_ = VK_NULL_HANDLE;
  Queue compute_, transfer_;
  QueueLock compute_mutex_, transfer_mutex_;
  bool two_queues_ = false;
  double seconds_per_tick_ = 0;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  uint32_t device_memory_ = 0, staging_memory_ = 0, record_memory_ = 0;
  bool host_sees_memory_ = false;
};

inline constexpr uint32_t kPushBytes = 128;  // what every device can push

}  // namespace sparkle::vulkan
