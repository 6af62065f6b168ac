#include "backends/vulkan/program.h"

#include <algorithm>

namespace sparkle::vulkan {
namespace {

constexpr size_t kMostRecordings = 8;

// Bytes of a slot that a launch reads or writes.
struct Touch {
  int slot = 0;
  int64_t begin = 0, end = 0;
  bool overlaps(const Touch& o) const { return slot == o.slot && begin < o.end && o.begin < end; }
};

// What was read and written since the last barrier.
class Hazards {
 public:
  bool conflicts(const std::vector<Touch>& reads, const std::vector<Touch>& writes) const {
    const auto meets = [](const std::vector<Touch>& a, const std::vector<Touch>& b) {
      return std::any_of(a.begin(), a.end(), [&](const Touch& t) {
        return std::any_of(b.begin(), b.end(), [&](const Touch& u) { return t.overlaps(u); });
      });
    };
    return meets(reads, writes_) || meets(writes, writes_) || meets(writes, reads_);
  }
  void add(const std::vector<Touch>& reads, const std::vector<Touch>& writes) {
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
  }
  void clear() { reads_.clear(), writes_.clear(); }

 private:
  std::vector<Touch> reads_, writes_;
};

// The lowest and highest bytes that an operand's elements lie in, from its binding's start.
Touch touch_of(const Binding& binding, const TensorDesc& desc, int64_t packed_bytes) {
  if (packed_bytes > 0) return {binding.slot, binding.offset_bytes, binding.offset_bytes + packed_bytes};
  int64_t low = desc.layout.offset, high = desc.layout.offset + 1;
  for (int i = 0; i < desc.shape.size(); ++i) {
    const int64_t reach = (desc.shape[i] - 1) * desc.layout.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = size_of(desc.dtype);
  return {binding.slot, binding.offset_bytes + low * size, binding.offset_bytes + high * size};
}

}  // namespace

VulkanProgram::VulkanProgram(const Workshop& shop, std::span<const Launch> launches)
    : context_(shop.context), memory_(shop.memory) {
  Hazards hazards;
  auto reporting = std::make_shared<std::vector<ReportingLaunch>>();
  for (const Launch& launch : launches) {
    const auto& kernel = static_cast<const VulkanKernel&>(*launch.kernel);
    RecordedLaunch recorded;
    recorded.name = launch.name;
    recorded.records = kernel.records;
    std::vector<Touch> reads, writes;
    std::vector<SlotAddress> origins;  // of element (0,...,0)
    for (size_t i = 0; i < launch.inputs.size(); ++i) {
      const TensorDesc& desc = kernel.stage.inputs[i];
      const int64_t packed = kernel.packed_bytes(static_cast<int>(i));
      reads.push_back(touch_of(launch.inputs[i], desc, packed));
      origins.push_back(
          {launch.inputs[i].slot, launch.inputs[i].offset_bytes + (packed > 0 ? 0 : desc.layout.offset * size_of(desc.dtype))});
    }
    for (size_t i = 0; i < launch.outputs.size(); ++i) {
      const TensorDesc& desc = kernel.stage.outputs[i];
      writes.push_back(touch_of(launch.outputs[i], desc, 0));
      origins.push_back({launch.outputs[i].slot, launch.outputs[i].offset_bytes + desc.layout.offset * size_of(desc.dtype)});
    }
    if (kernel.workspace > 0)
      writes.push_back(
          {launch.workspace.slot, launch.workspace.offset_bytes, launch.workspace.offset_bytes + kernel.workspace});
    for (size_t i = 0; i < kernel.dispatches.size(); ++i) {
      const Dispatch& d = kernel.dispatches[i];
      RecordedDispatch r;
      r.pipeline = d.pipeline->handle;
      r.groups = d.groups;
      r.constants = d.constants;
      for (const Address& a : d.addresses) {
        const auto place = static_cast<int64_t>(reporting->size() * sizeof(BoundsReports));
        const SlotAddress from = a.operand == kBoundsReports ? SlotAddress{kBoundsReports, place}
                                 : a.operand == kWorkspace   ? SlotAddress{launch.workspace.slot, launch.workspace.offset_bytes}
                                                             : origins[static_cast<size_t>(a.operand)];
        r.addresses.push_back({from.slot, from.offset + a.offset});
      }
      r.barrier = i == 0 ? hazards.conflicts(reads, writes) : d.after_previous;
      if (r.barrier) hazards.clear();
      recorded.dispatches.push_back(std::move(r));
    }
    hazards.add(reads, writes);
    if (kernel.bounds_error) reporting->push_back({launch.name, kernel.bounds_error});
    launches_.push_back(std::move(recorded));
  }
  reporting_ = std::move(reporting);
}

VulkanProgram::~VulkanProgram() {
  const auto& vk = context_->vk();
  if (pool_) vk.vkDestroyCommandPool(context_->device(), pool_, nullptr);
}

Result<Recording*> VulkanProgram::recording(std::span<Buffer* const> slots, bool timed, uint64_t complete, bool& fresh) {
  Key key{timed, {}};
  for (Buffer* slot : slots) key.second.push_back(slot ? static_cast<DeviceBuffer*>(slot)->address() : 0);
  fresh = false;
  const auto at = recordings_.find(key);
  const bool alone = timed || !reporting_->empty();
  const auto free = [&](const Recording& r) { return r.last_use <= complete && r.queries.use_count() <= 1; };
  if (at != recordings_.end() && (!alone || free(*at->second))) return at->second.get();

  const auto& vk = context_->vk();
  if (!pool_) {
    auto info = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    info.queueFamilyIndex = context_->compute().family;
    SPARKLE_VK(vk.vkCreateCommandPool(context_->device(), &info, nullptr, &pool_), "vkCreateCommandPool");
  }
  // One whose work is done is recorded over; while all are busy there is one more.
  std::unique_ptr<Recording> recording;
  if (recordings_.size() >= kMostRecordings) {
    auto oldest = recordings_.end();
    for (auto it = recordings_.begin(); it != recordings_.end(); ++it)
      if (free(*it->second) && (oldest == recordings_.end() || it->second->last_use < oldest->second->last_use)) oldest = it;
    if (oldest != recordings_.end()) {
      recording = std::move(oldest->second);
      recordings_.erase(oldest);
    }
  }
  if (!recording) {
    recording = std::make_unique<Recording>();
    auto info = structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    SPARKLE_VK(vk.vkAllocateCommandBuffers(context_->device(), &info, &recording->commands), "vkAllocateCommandBuffers");
  }
  if (timed && !recording->queries) {
    auto info = structure<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = static_cast<uint32_t>(launches_.size() + 1);
    VkQueryPool pool = VK_NULL_HANDLE;
    SPARKLE_VK(vk.vkCreateQueryPool(context_->device(), &info, nullptr, &pool), "vkCreateQueryPool");
    recording->queries = std::make_shared<Queries>(context_, pool);
  } else if (!timed) {
    recording->queries = nullptr;
  }
  if (!reporting_->empty() && !recording->bounds_reports) {
    const auto bytes = static_cast<int64_t>(reporting_->size() * sizeof(BoundsReports));
    SPARKLE_TRY(bounds_reports, memory_->allocate(bytes, MemoryUse::record));
    std::uninitialized_default_construct_n(reinterpret_cast<BoundsReports*>(bounds_reports->host()), reporting_->size());
    recording->bounds_reports = std::move(bounds_reports);
  }
  SPARKLE_CHECK(record(*recording, key.second));
  fresh = true;
  // One that is still busy leaves its place to the new one only by another key: its slots with a zero behind.
  while (recordings_.count(key)) key.second.push_back(0);
  return recordings_.emplace(std::move(key), std::move(recording)).first->second.get();
}

Status VulkanProgram::record(Recording& recording, std::span<const VkDeviceAddress> slots) {
  const auto& vk = context_->vk();
  auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = recording.queries || recording.bounds_reports ? 0 : VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  SPARKLE_VK(vk.vkBeginCommandBuffer(recording.commands, &begin), "vkBeginCommandBuffer");
  const auto barrier = [&](VkPipelineStageFlags2 to, VkAccessFlags2 access) {
    auto memory = structure<VkMemoryBarrier2>(VK_STRUCTURE_TYPE_MEMORY_BARRIER_2);
    memory.srcStageMask = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
    memory.srcAccessMask = VK_ACCESS_2_SHADER_WRITE_BIT;
    memory.dstStageMask = to;
    memory.dstAccessMask = access;
    auto info = structure<VkDependencyInfo>(VK_STRUCTURE_TYPE_DEPENDENCY_INFO);
    info.memoryBarrierCount = 1;
    info.pMemoryBarriers = &memory;
    vk.vkCmdPipelineBarrier2(recording.commands, &info);
  };
  constexpr VkAccessFlags2 kShader = VK_ACCESS_2_SHADER_READ_BIT | VK_ACCESS_2_SHADER_WRITE_BIT;
  uint32_t query = 0;
  const auto stamp = [&] {
    if (!recording.queries) return;
    vk.vkCmdWriteTimestamp2(recording.commands, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, recording.queries->pool(), query++);
  };
  if (recording.queries)
    vk.vkCmdResetQueryPool(recording.commands, recording.queries->pool(), 0, static_cast<uint32_t>(launches_.size() + 1));
  // What an earlier submission wrote, here or by a copy, is there already: submissions wait for each other.
  stamp();
  const StepLabels& labels = context_->labels();
  for (const RecordedLaunch& launch : launches_) {
    if (labels.begin) {
      auto label = structure<VkDebugUtilsLabelEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT);
      label.pLabelName = launch.name.c_str();
      labels.begin(recording.commands, &label);
    }
    bool first = true;
    for (const RecordedDispatch& d : launch.dispatches) {
      // Steps that are timed run one after the other.
      if (d.barrier || (first && recording.queries)) barrier(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, kShader);
      first = false;
      std::array<std::byte, kPushBytes> push{};
      size_t at = 0;
      for (const SlotAddress& a : d.addresses) {
        const VkDeviceAddress base =
            a.slot == kBoundsReports ? recording.bounds_reports->address() : slots[static_cast<size_t>(a.slot)];
        const VkDeviceAddress address = base + static_cast<VkDeviceAddress>(a.offset);
        std::memcpy(&push[at], &address, 8);
        at += 8;
      }
      std::copy(d.constants.begin(), d.constants.end(), push.begin() + static_cast<std::ptrdiff_t>(at));
      vk.vkCmdBindPipeline(recording.commands, VK_PIPELINE_BIND_POINT_COMPUTE, d.pipeline);
      vk.vkCmdPushConstants(recording.commands, context_->layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes, push.data());
      vk.vkCmdDispatch(recording.commands, d.groups[0], d.groups[1], d.groups[2]);
    }
    if (labels.begin) labels.end(recording.commands);
    stamp();
  }
  barrier(VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT,
          VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_READ_BIT);
  SPARKLE_VK(vk.vkEndCommandBuffer(recording.commands), "vkEndCommandBuffer");
  return ok();
}

}  // namespace sparkle::vulkan
