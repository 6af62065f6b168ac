#include "backends/vulkan/vulkan_backend.h"

#include <atomic>
#include <cstdio>
#include <deque>
#include <list>

#include "backends/memory_probe.h"
#include "backends/vulkan/program.h"
#include "backends/vulkan/roofs.h"
#include "backends/vulkan/shaders/shaders.h"
#include "backends/self_tests/verdict_cache.h"
#include "base/files/cache_folder.h"
#include "base/log.h"
#include "base/record.h"

namespace sparkle::vulkan {
namespace {

// Tokens of the two timelines are told apart by their highest bit.
constexpr uint64_t kTransfer = uint64_t{1} << 63;

// A semaphore that counts what is complete on one queue.
struct Timeline {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t submitted = 0;
  std::deque<std::pair<uint64_t, std::shared_ptr<std::vector<std::shared_ptr<void>>>>> kept;  // until the value is reached
};

// Records of self-tests are told apart by the driver and the build of the shaders: what others did says nothing of these.
std::string build_of(const Context& context) {
  std::string text;
  char number[24];
  for (const uint8_t byte : context.physical().driver_id) {
    std::snprintf(number, sizeof number, "%02x", byte);
    text += number;
  }
  uint64_t build = 0;
  for (const Shader& s : shaders())
    build = build * 31 + hash_text({reinterpret_cast<const char*>(s.words.data()), s.words.size_bytes()});
  std::snprintf(number, sizeof number, "_%016llx", static_cast<unsigned long long>(build));
  return text + number;
}

VerdictCacheOptions verdict_cache_options(const Context& context, const std::string& folder) {
  const ContextOptions& o = context.options();
  const PhysicalDevice& physical = context.physical();
  // A device made of the machine's cores waits for whatever else runs there.
  const int patience = is_software(physical.description) ? 6 : 1;
  return {folder,          "vulkan",  build_of(context), physical.name, physical.driver, patience * o.try_timeout,
          o.give_up_after, o.sandbox, o.try_elsewhere};
}

class BackendOfDevice final : public VulkanBackend, public MemoryProbe {
 public:
  BackendOfDevice(std::shared_ptr<Instance> instance, std::shared_ptr<Context> context, std::shared_ptr<Executor> executor,
                  MakeKernel make)
      : instance_(std::move(instance)), executor_(std::move(executor)), make_(std::move(make)) {
    devices_.push_back(context->physical().description);
    shop_.context = std::move(context);
    shop_.memory = std::make_shared<Memory>(shop_.context);
    shop_.pipelines = std::make_shared<Pipelines>(shop_.context);
  }
  ~BackendOfDevice() override {
    const auto& vk = shop_.context->vk();
    if (given_up_) {
      leak();
      return;
    }
    // Other queues of a caller's device are not ours to wait for.
    if (!shop_.context->options().lent) {
      vk.vkDeviceWaitIdle(shop_.context->device());
    } else if (!lost_) {
      for (Timeline* t : {&compute_, &transfer_})
        if (t->semaphore) wait_for(*t, t->submitted, UINT64_MAX);
    }
    for (Timeline* t : {&compute_, &transfer_}) {
      t->kept.clear();
      if (t->semaphore) vk.vkDestroySemaphore(shop_.context->device(), t->semaphore, nullptr);
    }
    if (copy_pool_) vk.vkDestroyCommandPool(shop_.context->device(), copy_pool_, nullptr);
  }
  Status open() {
    const ContextOptions& options = shop_.context->options();
    const std::string folder = !options.cache                 ? std::string()
                               : options.cache_folder.empty() ? cache_folder()
                                                              : options.cache_folder;
    verdict_cache_ = std::make_unique<VerdictCache>(verdict_cache_options(*shop_.context, folder));
    devices_.back().denylist = verdict_cache_->denylist();
    for (Timeline* t : {&compute_, &transfer_}) {
      auto type = structure<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
      type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
      auto info = structure<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
      info.pNext = &type;
      SPARKLE_VK(vk().vkCreateSemaphore(shop_.context->device(), &info, nullptr, &t->semaphore), "vkCreateSemaphore");
    }
    auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT | VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = shop_.context->transfer().family;
    SPARKLE_VK(vk().vkCreateCommandPool(shop_.context->device(), &pool, nullptr, &copy_pool_), "vkCreateCommandPool");
    return ok();
  }

  const Device& device() const override {
    const std::lock_guard lock(mutex_);
    return devices_.back();
  }
  Executor& executor() override { return *executor_; }
  const Context& context() const override { return *shop_.context; }
  Pipelines& pipelines() override { return *shop_.pipelines; }
  Status calibrate() override {
    Device measured = device();
    SPARKLE_CHECK(verdict_cache_->guarded(*this, "roofs/rates", [&] { return measure_roofs(*this, shop_, measured); }));
    set_rates(measured);
    // Matrix units behind markers of their own: where one ends the process or fails, it alone keeps the guess.
    const std::vector<MathUnit> units = measured.units;
    for (const MathUnit& unit : units) {
      if (unit.kind != UnitKind::matrix) continue;
      const Status done = verdict_cache_->guarded(*this, "roofs/" + unit.name,
                                                  [&] { return measure_matrix_unit(*this, shop_, measured, unit.name); });
      if (!done.ok() && lost_) return done;
      if (!done.ok())
        log(LogLevel::warning, "The rate of '" + unit.name + "' stays a guess, measuring it failed: " + done.error().message);
    }
    set_rates(measured);
    return ok();
  }
  bool lost() const override { return lost_; }
  Status settle(std::chrono::nanoseconds timeout) override {
    for (Timeline* t : {&compute_, &transfer_}) {
      if (lost_) return lost_error();
      uint64_t last = 0;
      {
        const std::lock_guard lock(*(t == &compute_ ? shop_.context->compute() : shop_.context->transfer()).mutex);
        last = t->submitted;
      }
      const VkResult result = wait_for(*t, last, static_cast<uint64_t>(std::max<int64_t>(1, timeout.count())));
      if (result == VK_SUCCESS) continue;
      given_up_ = result == VK_TIMEOUT;
      lost_ = true;
      return lost_error();
    }
    return ok();
  }
  void set_rates(const Device& rates) override {
    const std::lock_guard lock(mutex_);
    std::string denylist = std::move(devices_.back().denylist);
    devices_.back() = rates;
    devices_.back().denylist = std::move(denylist);
  }
  Status try_out(std::span<const ScheduledStage> stages) override {
    if (!shop_.context->options().try_first) return ok();
    std::vector<SelfTest> self_tests;
    for (const ScheduledStage& s : stages) self_tests.push_back(self_test_of(*s.stage, *s.schedule));
    Status tried = verdict_cache_->try_out(*this, self_tests);
    if (!tried.ok() && tried.error().reason == Reason::failed_probe) update_denylist();
    return tried;
  }
  Status try_lines(const std::string& lines) override {
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = std::min(lines.find('\n', begin), lines.size());
      SPARKLE_TRY(self_test, SelfTest::from_text(std::string_view(lines).substr(begin, end - begin)));
      if (Status tried = verdict_cache_->try_out(*this, {&self_test, 1});
          !tried.ok() && tried.error().reason != Reason::failed_probe)
        return tried;
      begin = end + 1;
    }
    return ok();
  }
  std::vector<std::string> findings() const override { return verdict_cache_->findings(); }
  std::vector<std::string> speeds() const override { return verdict_cache_->speeds(); }
  void keep_until(Token token, std::vector<std::shared_ptr<void>> kept) override {
    const std::lock_guard lock(mutex_);
    timeline_of(token).kept.emplace_back(token.value & ~kTransfer,
                                         std::make_shared<std::vector<std::shared_ptr<void>>>(std::move(kept)));
  }
  double probe_peak(std::string_view unit) override {
    const auto flops = measure_flops(*this, shop_, unit);
    return flops.ok() ? *flops : 0;
  }
  bool knows_caches() const override { return false; }  // Vulkan does not tell of them
  double probe_bandwidth(size_t level, double bytes) override {
    const Device d = device();
    if (level >= d.memory.size() || d.memory[level].filled_by_hand) return 0;
    const auto rate = measure_bandwidth(*this, shop_, bytes);
    return rate.ok() ? *rate : 0;
  }
  Counters counters() const override {
    return {submissions_.load(), recordings_.load(), traffic().copies, static_cast<uint64_t>(shop_.pipelines->count())};
  }

  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    SPARKLE_TRY(buffer, shop_.memory->allocate(bytes, kind == MemoryKind::staging ? MemoryUse::staging : MemoryUse::device));
    return std::shared_ptr<Buffer>(std::move(buffer));
  }
  Result<std::shared_ptr<Buffer>> import(void*, int64_t) override { return std::shared_ptr<Buffer>(); }
  Result<std::shared_ptr<Buffer>> wrap(const LentBuffer& lent) override {
    const auto refused = [](const std::string& why) { return Error{Reason::bad_usage, "The VkBuffer cannot be used: " + why}; };
    if (!lent.buffer) return refused("its handle is VK_NULL_HANDLE.");
    if (lent.device != shop_.context->device())
      return refused("it was made on another VkDevice than this device's; open the device on that one.");
    const std::pair<VkBufferUsageFlags, const char*> needed[] = {
        {VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, "VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT"},
        {VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, "VK_BUFFER_USAGE_STORAGE_BUFFER_BIT"},
        {VK_BUFFER_USAGE_TRANSFER_SRC_BIT, "VK_BUFFER_USAGE_TRANSFER_SRC_BIT"},
        {VK_BUFFER_USAGE_TRANSFER_DST_BIT, "VK_BUFFER_USAGE_TRANSFER_DST_BIT"}};
    for (const auto& [bit, name] : needed)
      if (!(lent.usage & bit)) return refused("it was made without " + std::string(name) + "; make it with that usage.");
    VkMemoryRequirements there{};
    vk().vkGetBufferMemoryRequirements(shop_.context->device(), lent.buffer, &there);
    const auto size = static_cast<int64_t>(std::min<uint64_t>(there.size, INT64_MAX));
    if (lent.offset < 0 || lent.bytes <= 0 || lent.bytes > size || lent.offset > size - lent.bytes)
      return refused("it has " + std::to_string(size) + " bytes; " + std::to_string(lent.bytes) + " from byte " +
                     std::to_string(lent.offset) + " on are not inside.");
    auto info = structure<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
    info.buffer = lent.buffer;
    const VkDeviceAddress address = vk().vkGetBufferDeviceAddress(shop_.context->device(), &info);
    if (!address)
      return refused(
          "the driver gives it no device address; bind memory to it that has VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT.");
    const VkDeviceAddress first = address + static_cast<VkDeviceAddress>(lent.offset);
    if (first % kLentAlignment != 0)
      return refused("its bytes begin at an address that is no multiple of " + std::to_string(kLentAlignment) +
                     "; give another offset.");
    return std::shared_ptr<Buffer>(std::make_shared<DeviceBuffer>(lent.buffer, first, lent.bytes, lent.offset));
  }

  Error no_kernel(const Stage& stage) const {
    const std::string family(name_of(stage.family()));
    std::string denied;
    for (const std::string& finding : findings())
      if (finding.starts_with(family + "/")) denied += (denied.empty() ? "; banned are " : ", ") + finding;
    return {Reason::no_kernel, (factory_of(stage.family()) ? "no Vulkan kernel of the " + family + " family supports it"
                                                           : "there is no Vulkan kernel for the " + family + " family") +
                                   denied + "; use --device cpu"};
  }

  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    const std::string_view variant = variant_of(schedule);
    if (!factory_of(stage.family()) || variant == "no_kernel" || variant == "plain") return no_kernel(stage);
    SPARKLE_TRY(kernel, make_(stage, schedule, shop_, constants));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    shop_.pipelines->save();  // what this program needs is compiled
    return std::unique_ptr<Program>(std::make_unique<VulkanProgram>(shop_, launches));
  }

  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    // Recording is a cache behind a program that otherwise never changes.
    auto& recorded = const_cast<VulkanProgram&>(static_cast<const VulkanProgram&>(program));
    const std::lock_guard recording_lock(recorded.mutex);
    SPARKLE_TRY(complete, reached(compute_));  // recordings that are free have been asked for bounds reports
    bool fresh = false;
    SPARKLE_TRY(recording, recorded.recording(slots, options.timestamps && keeps_time(), complete, fresh));
    recordings_ += fresh;
    SPARKLE_TRY(token, send(shop_.context->compute(), compute_, recording->commands, options.after, options.keep_alive));
    ++submissions_;
    recording->last_use = token.value;
    const std::lock_guard lock(mutex_);
    if (recording->bounds_reports) asked_.push_back({token.value, recording->bounds_reports, recorded.reporting()});
    if (options.timestamps && keeps_time()) {
      timed_[token.value] = {recording->queries, recorded.launches()};
      while (timed_.size() > 16) timed_.erase(timed_.begin());
    }
    return token;
  }

  Result<Token> copy(std::span<const CopyRegion> regions, Token after) override {
    const std::lock_guard lock(copy_mutex_);
    SPARKLE_TRY(complete, reached(copy_timeline()));
    VkCommandBuffer commands = VK_NULL_HANDLE;
    for (auto& [buffer, used] : copy_commands_)
      if (used <= complete) {
        commands = buffer;
        break;
      }
    if (!commands) {
      auto info = structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
      info.commandPool = copy_pool_;
      info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
      info.commandBufferCount = 1;
      SPARKLE_VK(vk().vkAllocateCommandBuffers(shop_.context->device(), &info, &commands), "vkAllocateCommandBuffers");
      copy_commands_.emplace_back(commands, 0);
    }
    auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    SPARKLE_VK(vk().vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    for (const CopyRegion& r : regions) {
      if (r.bytes <= 0) continue;
      const auto &from = *static_cast<DeviceBuffer*>(r.from), &to = *static_cast<DeviceBuffer*>(r.to);
      const VkBufferCopy region{static_cast<VkDeviceSize>(from.offset() + r.from_offset),
                                static_cast<VkDeviceSize>(to.offset() + r.to_offset), static_cast<VkDeviceSize>(r.bytes)};
      vk().vkCmdCopyBuffer(commands, from.buffer(), to.buffer(), 1, &region);
      count_copy();
    }
    auto memory = structure<VkMemoryBarrier2>(VK_STRUCTURE_TYPE_MEMORY_BARRIER_2);
    memory.srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT;
    memory.srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT;
    memory.dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT;
    memory.dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_READ_BIT;
    auto dependency = structure<VkDependencyInfo>(VK_STRUCTURE_TYPE_DEPENDENCY_INFO);
    dependency.memoryBarrierCount = 1;
    dependency.pMemoryBarriers = &memory;
    vk().vkCmdPipelineBarrier2(commands, &dependency);
    SPARKLE_VK(vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    SPARKLE_TRY(token, send(shop_.context->transfer(), copy_timeline(), commands, after, nullptr));
    for (auto& [buffer, used] : copy_commands_)
      if (buffer == commands) used = token.value;
    if (shop_.context->two_queues()) token.value |= kTransfer;
    return token;
  }

  bool done(Token token) override {
    const auto now = reached(timeline_of(token));
    return !now.ok() || *now >= (token.value & ~kTransfer);
  }

  Status wait(Token token, std::chrono::nanoseconds timeout) override {
    if (lost_) return lost_error();
    Timeline& timeline = timeline_of(token);
    const uint64_t value = token.value & ~kTransfer;
    const uint64_t nanoseconds = timeout.count() > 0 ? static_cast<uint64_t>(timeout.count()) : UINT64_MAX;
    const VkResult result = wait_for(timeline, value, nanoseconds);
    if (result == VK_TIMEOUT)
      return Error{Reason::device_lost, "The Vulkan device '" + device().name + "' has not answered within " +
                                            std::to_string(nanoseconds / 1000000) + " ms."};
    if (result != VK_SUCCESS) {
      if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
      return error_of(result, "vkWaitSemaphores");
    }
    SPARKLE_TRY(now, reached(timeline));
    (void)now;
    const std::lock_guard lock(mutex_);
    const auto bounds_error = bounds_errors_.find(token.value);
    if (bounds_error != bounds_errors_.end()) return bounds_error->second;
    return ok();
  }

  bool can_be_lost() const override { return true; }
  bool keeps_time() const override { return shop_.context->compute().timestamp_bits > 0; }
  Result<std::vector<StepTime>> timestamps(Token token) override {
    if (!keeps_time())
      return Error{Reason::bad_usage, "The driver of '" + device().name + "' keeps no time; measure without steps."};
    const std::lock_guard lock(mutex_);
    const auto at = timed_.find(token.value);
    if (at == timed_.end()) return Error{Reason::bad_usage, "This submission was made without timestamps."};
    const auto [queries, launches] = at->second;
    timed_.erase(at);
    std::vector<uint64_t> ticks(launches + 1);
    SPARKLE_VK(vk().vkGetQueryPoolResults(shop_.context->device(), queries->pool(), 0, static_cast<uint32_t>(ticks.size()),
                                          ticks.size() * 8, ticks.data(), 8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
               "vkGetQueryPoolResults");
    const uint32_t bits = shop_.context->compute().timestamp_bits;
    const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    const auto seconds = [&](size_t i) {
      return static_cast<double>((ticks[i] - ticks[0]) & mask) * shop_.context->seconds_per_tick();
    };
    std::vector<StepTime> times;
    for (size_t i = 0; i < launches; ++i) times.push_back({seconds(i), seconds(i + 1)});
    return times;
  }

 private:
  // A submission whose kernels may report.
  struct Asked {
    uint64_t value = 0;
    std::shared_ptr<DeviceBuffer> bounds_reports;
    std::shared_ptr<const std::vector<ReportingLaunch>> launches;
  };
  static constexpr size_t kMostBoundsReports = 64;  // kept for who waits later

  VkResult wait_for(Timeline& timeline, uint64_t value, uint64_t nanoseconds) {
    auto info = structure<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline.semaphore;
    info.pValues = &value;
    return vk().vkWaitSemaphores(shop_.context->device(), &info, nanoseconds);
  }
  const VolkDeviceTable& vk() const { return shop_.context->vk(); }
  Timeline& copy_timeline() { return shop_.context->two_queues() ? transfer_ : compute_; }
  Timeline& timeline_of(Token token) { return token.value & kTransfer ? transfer_ : compute_; }
  Error lost_error() const {
    return {Reason::device_lost,
            "The Vulkan device '" + device().name + "' stopped answering; open it again, or use --device cpu."};
  }

  // Of a device that is given up: what its work may still touch, and the device itself, stay as they are until the process
  // ends.
  void leak() {
    struct Left {
      std::shared_ptr<Instance> instance;
      Workshop shop;
      Timeline compute, transfer;
      decltype(timed_) timed;
      VkCommandPool copies;
    };
    static std::mutex mutex;
    static auto* const all = new std::vector<Left>;
    const std::lock_guard lock(mutex);
    all->push_back({instance_, shop_, std::move(compute_), std::move(transfer_), std::move(timed_), copy_pool_});
  }

  // The planner sees another device from now on; references to the one before stay good.
  void update_denylist() {
    Device changed = device();
    changed.denylist = verdict_cache_->denylist();
    const std::lock_guard lock(mutex_);
    devices_.push_back(std::move(changed));
  }

  // The value that the timeline has come to; lets go what was kept for it, and hears what its kernels report.
  Result<uint64_t> reached(Timeline& timeline) {
    if (lost_) return lost_error();
    uint64_t value = 0;
    const VkResult result = vk().vkGetSemaphoreCounterValue(shop_.context->device(), timeline.semaphore, &value);
    if (result != VK_SUCCESS) {
      if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
      return error_of(result, "vkGetSemaphoreCounterValue");
    }
    std::vector<std::shared_ptr<void>> gone;  // let go outside of the lock: buffers may come back here
    {
      const std::lock_guard lock(mutex_);
      while (!timeline.kept.empty() && timeline.kept.front().first <= value) {
        gone.push_back(std::move(timeline.kept.front().second));
        timeline.kept.pop_front();
      }
      if (&timeline == &compute_)
        std::erase_if(asked_, [&](const Asked& a) {
          if (a.value > value) return false;
          if (auto error = take_bounds_report({reinterpret_cast<BoundsReports*>(a.bounds_reports->host()), a.launches->size()},
                                              *a.launches))
            bounds_errors_.emplace(a.value, std::move(*error));
          return true;
        });
      while (bounds_errors_.size() > kMostBoundsReports) bounds_errors_.erase(bounds_errors_.begin());
    }
    return value;
  }

  Result<Token> send(const Queue& queue, Timeline& timeline, VkCommandBuffer commands, Token after,
                     std::shared_ptr<std::vector<std::shared_ptr<void>>> keep) {
    const std::lock_guard lock(*queue.mutex);
    if (lost_) return lost_error();
    auto command = structure<VkCommandBufferSubmitInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO);
    command.commandBuffer = commands;
    auto signal = structure<VkSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO);
    signal.semaphore = timeline.semaphore;
    signal.value = timeline.submitted + 1;
    signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    auto wait = structure<VkSemaphoreSubmitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO);
    wait.semaphore = timeline_of(after).semaphore;
    wait.value = after.value & ~kTransfer;
    wait.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    auto info = structure<VkSubmitInfo2>(VK_STRUCTURE_TYPE_SUBMIT_INFO_2);
    info.commandBufferInfoCount = 1;
    info.pCommandBufferInfos = &command;
    info.signalSemaphoreInfoCount = 1;
    info.pSignalSemaphoreInfos = &signal;
    // Work of one queue follows itself by the barrier at the end of each command buffer.
    if (after.value != 0 && &timeline_of(after) != &timeline) {
      info.waitSemaphoreInfoCount = 1;
      info.pWaitSemaphoreInfos = &wait;
    }
    const VkResult result = vk().vkQueueSubmit2(queue.handle, 1, &info, VK_NULL_HANDLE);
    if (result != VK_SUCCESS) {
      if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
      return error_of(result, "vkQueueSubmit2");
    }
    ++timeline.submitted;
    if (keep) {
      const std::lock_guard kept_lock(mutex_);
      timeline.kept.emplace_back(timeline.submitted, std::move(keep));
    }
    return Token{timeline.submitted};
  }

  std::shared_ptr<Instance> instance_;
  std::list<Device> devices_;  // as the planner saw it, the last one now
  std::shared_ptr<Executor> executor_;
  MakeKernel make_;
  Workshop shop_;
  std::unique_ptr<VerdictCache> verdict_cache_;
  Timeline compute_, transfer_;
  VkCommandPool copy_pool_ = VK_NULL_HANDLE;
  std::mutex copy_mutex_;
  std::vector<std::pair<VkCommandBuffer, uint64_t>> copy_commands_;
  mutable std::mutex mutex_;
  std::map<uint64_t, std::pair<std::shared_ptr<Queries>, size_t>> timed_;
  std::vector<Asked> asked_;                 // whose bounds reports were not looked at yet
  std::map<uint64_t, Error> bounds_errors_;  // by the token's value
  std::atomic<bool> lost_{false}, given_up_{false};
  std::atomic<uint64_t> submissions_{0}, recordings_{0};
};

}  // namespace

Result<std::shared_ptr<DeviceBuffer>> Workshop::upload(const void* bytes, int64_t size) const {
  if (!memory) return std::make_shared<DeviceBuffer>(VK_NULL_HANDLE, VkDeviceAddress{0}, size, 0);  // nothing will run
  SPARKLE_TRY(buffer, memory->allocate(size, MemoryUse::record));
  std::memcpy(buffer->host(), bytes, static_cast<size_t>(size));
  return buffer;
}

Result<std::shared_ptr<VulkanBackend>> make_vulkan_backend(std::shared_ptr<Instance> instance, size_t index,
                                                           const ContextOptions& options, std::shared_ptr<Executor> executor,
                                                           MakeKernel make) {
  SPARKLE_TRY(context, Context::open(instance, index, options));
  auto backend =
      std::make_shared<BackendOfDevice>(std::move(instance), std::move(context), std::move(executor), std::move(make));
  SPARKLE_CHECK(backend->open());
  return std::shared_ptr<VulkanBackend>(std::move(backend));
}

}  // namespace sparkle::vulkan
