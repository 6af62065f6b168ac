// Programs: launches flattened to dispatches with the barriers between them, recorded once for each set of slots.
#pragma once

#include <map>
#include <mutex>

#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

// Where a dispatch's address comes from: a slot, or kBoundsReports, and bytes from its start.
struct SlotAddress {
  int slot = 0;
  int64_t offset = 0;
};
struct RecordedDispatch {
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::vector<SlotAddress> addresses;
  std::vector<std::byte> constants;
  bool barrier = false;  // waits for all before it
};
struct RecordedLaunch {
  std::vector<RecordedDispatch> dispatches;
  std::string name;
  std::vector<std::shared_ptr<DeviceBuffer>> records;  // of its kernel, which may go before the program
};

// A query pool. Who holds it beside its recording has not read it yet.
class Queries {
 public:
  Queries(std::shared_ptr<Context> context, VkQueryPool pool) : context_(std::move(context)), pool_(pool) {}
  ~Queries() { context_->vk().vkDestroyQueryPool(context_->device(), pool_, nullptr); }
  Queries(const Queries&) = delete;
  Queries& operator=(const Queries&) = delete;
  VkQueryPool pool() const { return pool_; }

 private:
  std::shared_ptr<Context> context_;
  VkQueryPool pool_;
};

// A command buffer for one set of slots.
struct Recording {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  std::shared_ptr<Queries> queries;  // one more than launches, where times are kept
  uint64_t last_use = 0;             // the timeline's value when it is free again
  std::shared_ptr<DeviceBuffer> bounds_reports;
};

class VulkanProgram final : public Program {
 public:
  VulkanProgram(const Workshop& shop, std::span<const Launch> launches);
  ~VulkanProgram() override;
  // The command buffer for these slots, recorded where it is new. `timed` ones are for one submission at a time, and those of
  // programs that may report.
  // `complete`: the timeline's value, to find what may be recorded over.
  Result<Recording*> recording(std::span<Buffer* const> slots, bool timed, uint64_t complete, bool& fresh);
  size_t launches() const { return launches_.size(); }
  // The launches that look at their data, in the order of a recording's bounds reports. Not empty: submissions are to be asked.
  const std::shared_ptr<const std::vector<ReportingLaunch>>& reporting() const { return reporting_; }
  std::mutex mutex;  // held from recording() until last_use is set

 private:
  Status record(Recording& recording, std::span<const VkDeviceAddress> slots);

  std::shared_ptr<Context> context_;
  std::shared_ptr<Memory> memory_;
  std::vector<RecordedLaunch> launches_;
  std::shared_ptr<const std::vector<ReportingLaunch>> reporting_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  using Key = std::pair<bool, std::vector<VkDeviceAddress>>;
  std::map<Key, std::unique_ptr<Recording>> recordings_;
};

}  // namespace sparkle::vulkan
