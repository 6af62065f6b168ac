#include "backends/cuda/cuda_backend.h"

#include <atomic>
#include <cstdio>
#include <list>
#include <map>

#include "backends/burst_clock.h"
#include "backends/cuda/images.h"
#include "backends/cuda/program.h"
#include "backends/cuda/roofs.h"
#include "backends/cuda/timeline.h"
#include "backends/device_memory.h"
#include "backends/memory_probe.h"
#include "backends/self_tests/verdict_cache.h"
#include "base/files/cache_folder.h"
#include "base/record.h"

namespace sparkle::cuda {
namespace {

// Tokens of the timelines are told apart by their two highest bits.
enum Line : size_t { kCompute, kUpload, kDownload, kLines };
constexpr int kLineShift = 62;
constexpr uint64_t kNumber = (uint64_t{1} << kLineShift) - 1;
Token token_of(Line line, uint64_t number) { return {uint64_t{line} << kLineShift | number}; }

constexpr size_t kMostTimed = 16;  // submissions whose times are kept

// Records of self-tests are told apart by the device, its driver and the build of the kernels.
std::string build_of(const DeviceInfo& device) {
  uint64_t build = 0;
  for (const CodeImage& image : code_images())
    build = build * 31 + hash_text({reinterpret_cast<const char*>(image.code.data()), image.code.size()});
  char number[24];
  std::snprintf(number, sizeof number, "_%016llx", static_cast<unsigned long long>(build));
  return device.id + number;
}

class BackendOfDevice final : public CudaBackend, public MemoryProbe, public DeviceMemory, public BurstClock {
 public:
  BackendOfDevice(std::shared_ptr<Context> context, const CudaOptions& options, std::shared_ptr<Executor> executor,
                  MakeKernel make)
      : options_(options), executor_(std::move(executor)), make_(std::move(make)) {
    devices_.push_back(context->device().description);
    shop_.context = std::move(context);
    shop_.memory = std::make_shared<Memory>(shop_.context);
  }
  ~BackendOfDevice() override {
    if (given_up_) leak();
    else if (!lost_)
      for (Timeline& t : lines_)
        if (t.stream()) (void)t.wait(t.submitted(), {});
  }
  Status open() {
    SPARKLE_TRY(functions, Functions::open(shop_.context));
    shop_.functions = std::move(functions);
    const std::string folder = !options_.cache                 ? std::string()
                               : options_.cache_folder.empty() ? cache_folder()
                                                               : options_.cache_folder;
    const DeviceInfo& device = shop_.context->device();
    verdict_cache_ = std::make_unique<VerdictCache>(
        VerdictCacheOptions{folder, "cuda", build_of(device), device.name, device.driver, options_.try_timeout,
                            options_.give_up_after, options_.sandbox, options_.try_elsewhere});
    devices_.back().denylist = verdict_cache_->denylist();
    if (device.description.compiles) shop_.programs = std::make_shared<Programs>(shop_.context, folder);
    for (size_t i = 0; i < kLines; ++i) lines_[i].open(shop_.context, shop_.context->stream(i));
    return ok();
  }

  const Device& device() const override {
    const std::lock_guard lock(mutex_);
    return devices_.back();
  }
  Executor& executor() override { return *executor_; }
  const Context& context() const override { return *shop_.context; }
  Counters counters() const override {
    const auto programs = shop_.programs ? shop_.programs->counters() : Programs::Counters{};
    return {submissions_.load(), graphs_.load(), traffic().copies, programs.compiled, programs.read};
  }

  Status try_out(std::span<const ScheduledStage> stages) override {
    if (!options_.try_first) return ok();
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

  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    auto buffer = shop_.memory->allocate(bytes, kind == MemoryKind::staging);
    if (!buffer.ok()) return heard(buffer.take_error());
    return std::shared_ptr<Buffer>(std::move(*buffer));
  }
  Result<std::shared_ptr<Buffer>> import(void*, int64_t) override { return std::shared_ptr<Buffer>(); }

  Result<std::shared_ptr<Buffer>> wrap(const LentMemory& lent) override {
    const auto refused = [](const std::string& why) { return Error{Reason::bad_usage, "The memory cannot be used: " + why}; };
    const Driver& d = driver();
    const Current current(*shop_.context);
    unsigned type = 0;
    int ordinal = -1;
    if (d.pointer_attribute(&type, CuPointerAttribute::memory_type, lent.address) != CuResult::success ||
        d.pointer_attribute(&ordinal, CuPointerAttribute::device_ordinal, lent.address) != CuResult::success ||
        type != kMemoryOfDevice)
      return refused("its address is none of a CUDA device's memory.");
    if (ordinal != static_cast<int>(shop_.context->device().handle))
      return refused("it lies on CUDA device " + std::to_string(ordinal) + ", and this is device " +
                     std::to_string(shop_.context->device().handle) + "; open that one.");
    CuAddress base = 0;
    size_t size = 0;
    SPARKLE_CU(d, d.address_range(&base, &size, lent.address), "cuMemGetAddressRange");
    const uint64_t left = base + size - lent.address;
    if (lent.bytes <= 0 || static_cast<uint64_t>(lent.bytes) > left)
      return refused(std::to_string(lent.bytes) + " bytes are not inside: there are " + std::to_string(left) +
                     " from its address on.");
    if (lent.address % kLentAlignment != 0)
      return refused("its address is no multiple of " + std::to_string(kLentAlignment) + ".");
    return std::shared_ptr<Buffer>(std::make_shared<DeviceBuffer>(lent.address, lent.bytes));
  }
  Status wait_for_stream(uint64_t stream) override {
    SPARKLE_TRY(handle, stream_of(stream));
    SPARKLE_TRY(event, Event::record(shop_.context, handle, false));
    const Current current(*shop_.context);
    for (Timeline& t : lines_) SPARKLE_CU(driver(), driver().stream_wait(t.stream(), event->handle(), 0), "cuStreamWaitEvent");
    return ok();
  }
  Status let_stream_wait(uint64_t stream, Token token) override {
    SPARKLE_TRY(handle, stream_of(stream));
    Timeline caller;
    caller.open(shop_.context, handle);
    return caller.follow(line_of(token), token.value & kNumber);
  }

  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    const std::string_view variant = variant_of(schedule);
    if (!factory_of(stage.family()) || variant == "no_kernel" || variant == "plain") return no_kernel(stage);
    SPARKLE_TRY(kernel, make_(stage, schedule, shop_, constants));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    return std::unique_ptr<Program>(std::make_unique<CudaProgram>(shop_, launches));
  }

  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    // Graphs are a cache behind a program that otherwise never changes.
    auto& recorded = const_cast<CudaProgram&>(static_cast<const CudaProgram&>(program));
    if (lost_) return lost_error();
    Timeline::Kept kept;
    if (options.keep_alive) kept.push_back(options.keep_alive);
    Timeline& line = lines_[kCompute];
    const std::lock_guard program_lock(recorded.mutex);
    const std::lock_guard lock(submit_mutex_);
    SPARKLE_CHECK(heard(follow(line, options.after)));
    (void)line.reached();  // lets go what is done
    std::vector<std::shared_ptr<Event>> events;
    if (options.timestamps) {
      auto launched = recorded.launch_timed(slots, line.stream());
      if (!launched.ok()) return heard(launched.take_error());
      events = std::move(*launched);
    } else {
      auto graph = graph_of(recorded, slots);
      if (!graph.ok()) return heard(graph.take_error());
      SPARKLE_CHECK(heard(launch(**graph)));
      kept.push_back(std::move(*graph));
    }
    SPARKLE_TRY(token, close(recorded, std::move(kept)));
    if (options.timestamps) {
      const std::lock_guard timed_lock(mutex_);
      timed_.emplace_back(token.value, std::move(events));
      while (timed_.size() > kMostTimed) timed_.pop_front();
    }
    return token;
  }

  Result<Token> copy(std::span<const CopyRegion> regions, Token after) override {
    if (lost_) return lost_error();
    bool down = !regions.empty();
    for (const CopyRegion& r : regions) down = down && r.to->host() && !r.from->host();
    const Line which = down ? kDownload : kUpload;
    Timeline& line = lines_[which];
    const std::lock_guard lock(submit_mutex_);
    SPARKLE_CHECK(heard(follow(line, after)));
    (void)line.reached();
    const Current current(*shop_.context);
    for (const CopyRegion& r : regions) {
      if (r.bytes <= 0) continue;
      const CuResult result =
          driver().copy(r.to->address() + static_cast<CuAddress>(r.to_offset),
                        r.from->address() + static_cast<CuAddress>(r.from_offset), static_cast<size_t>(r.bytes), line.stream());
      if (result != CuResult::success) return heard(driver().error_of(result, "cuMemcpyAsync"));
      count_copy();
    }
    auto number = line.count({});
    if (!number.ok()) return heard(number.take_error());
    return token_of(which, *number);
  }

  bool done(Token token) override {
    const auto now = line_of(token).reached();
    return !now.ok() || *now >= (token.value & kNumber);
  }
  Status wait(Token token, std::chrono::nanoseconds timeout) override {
    if (lost_) return lost_error();
    auto there = line_of(token).wait(token.value & kNumber, timeout);
    if (!there.ok()) return heard(there.take_error());
    if (!*there)
      return Error{Reason::device_lost, "The CUDA device '" + device().name + "' has not answered within " +
                                            std::to_string(timeout.count() / 1000000) + " ms."};
    (void)line_of(token).reached();
    return answer(token);
  }
  bool can_be_lost() const override { return true; }
  bool lost() const override { return lost_; }
  Status settle(std::chrono::nanoseconds timeout) override {
    for (Timeline& t : lines_) {
      if (lost_) return lost_error();
      const auto there = t.wait(t.submitted(), std::max(timeout, std::chrono::nanoseconds(1)));
      if (there.ok() && *there) continue;
      given_up_ = there.ok();
      lost_ = true;
      return lost_error();
    }
    return ok();
  }
  void keep_until(Token token, std::vector<std::shared_ptr<void>> kept) override {
    line_of(token).keep(token.value & kNumber, std::move(kept));
  }
  bool keeps_time() const override { return true; }
  Result<double> seconds_of_run(const Program& program, std::span<Buffer* const> slots, const Burst& burst) override {
    auto& recorded = const_cast<CudaProgram&>(static_cast<const CudaProgram&>(program));
    if (lost_) return lost_error();
    const CuStream stream = lines_[kCompute].stream();
    std::shared_ptr<Event> events[2];
    const auto hand_over = [&]() -> Result<Token> {
      const std::lock_guard program_lock(recorded.mutex);
      const std::lock_guard lock(submit_mutex_);
      (void)lines_[kCompute].reached();  // lets go what is done
      auto graph = graph_of(recorded, slots);
      if (!graph.ok()) return heard(graph.take_error());
      Status launched = ok();
      for (int i = -burst.before; launched.ok() && i <= burst.runs; ++i) {
        if (i == 0 || i == burst.runs) {
          auto event = Event::record(shop_.context, stream, true);
          if (!event.ok()) launched = event.take_error();
          else events[i == 0 ? 0 : 1] = std::move(*event);
        }
        if (launched.ok() && i < burst.runs) launched = launch(**graph);
      }
      // Also behind an error: what was launched keeps its graph until it is done.
      auto token = close(recorded, {*graph});
      if (!launched.ok()) return heard(std::move(launched)).take_error();
      return token;
    };
    SPARKLE_TRY(token, hand_over());
    SPARKLE_CHECK(wait(token, {}));
    const Current current(*shop_.context);
    float milliseconds = 0;
    SPARKLE_CU(driver(), driver().event_elapsed(&milliseconds, events[0]->handle(), events[1]->handle()), "cuEventElapsedTime");
    return 1e-3 * milliseconds / burst.runs;
  }
  int64_t device_bytes() const override { return shop_.memory->device_bytes(); }
  // The functional model has no rates to tell.
  double probe_peak(std::string_view unit) override {
    if (driver().is_model()) return 0;
    const std::lock_guard lock(probe_mutex_);
    const auto flops = measure_flops(*this, shop_, probed_, unit);
    return flops.ok() ? *flops : 0;
  }
  double probe_bandwidth(size_t level, double bytes) override {
    if (driver().is_model()) return 0;
    const std::lock_guard lock(probe_mutex_);
    const auto rate = measure_bandwidth(*this, shop_, probed_, level, bytes);
    return rate.ok() ? *rate : 0;
  }
  void forget_probes() override {
    const std::lock_guard lock(probe_mutex_);
    probed_ = {};
  }
  Result<std::vector<StepTime>> timestamps(Token token) override {
    std::vector<std::shared_ptr<Event>> events;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [value, list] : timed_)
        if (value == token.value) events = std::exchange(list, {});
    }
    if (events.empty()) return Error{Reason::bad_usage, "This submission was made without timestamps."};
    const Current current(*shop_.context);
    std::vector<double> seconds;
    for (const auto& event : events) {
      float milliseconds = 0;
      SPARKLE_CU(driver(), driver().event_elapsed(&milliseconds, events[0]->handle(), event->handle()), "cuEventElapsedTime");
      seconds.push_back(1e-3 * milliseconds);
    }
    std::vector<StepTime> times;
    for (size_t i = 0; i + 1 < seconds.size(); ++i) times.push_back({seconds[i], seconds[i + 1]});
    return times;
  }

 private:
  const Driver& driver() const { return shop_.context->driver(); }
  Timeline& line_of(Token token) { return lines_[std::min<size_t>(token.value >> kLineShift, kDownload)]; }

  Result<std::shared_ptr<Graph>> graph_of(CudaProgram& program, std::span<Buffer* const> slots) {
    bool fresh = false;
    SPARKLE_TRY(graph, program.graph(slots, fresh));
    graphs_ += fresh;
    return graph;
  }
  Status launch(const Graph& graph) {
    const Current current(*shop_.context);
    SPARKLE_CU(driver(), driver().graph_launch(graph.exec(), lines_[kCompute].stream()), "cuGraphLaunch");
    return ok();
  }
  // Behind what was launched just now: a token that tells when it is done, and what its kernels have to say of their data.
  Result<Token> close(CudaProgram& program, Timeline::Kept kept) {
    Timeline& line = lines_[kCompute];
    Result<std::shared_ptr<DeviceBuffer>> reports = std::shared_ptr<DeviceBuffer>();
    if (!program.reporting()->empty()) reports = program.fetch_reports(line.stream());
    auto number = line.count(std::move(kept));  // also where there are no reports: the graph runs
    if (!number.ok()) return heard(number.take_error());
    if (!reports.ok()) return heard(reports.take_error());
    ++submissions_;
    const Token token = token_of(kCompute, *number);
    if (*reports) ask(token, std::move(*reports), program.reporting());
    return token;
  }
  // Work of one stream follows itself.
  Status follow(Timeline& line, Token after) {
    if (after.value == 0 || &line_of(after) == &line) return ok();
    return line.follow(line_of(after), after.value & kNumber);
  }
  Result<CuStream> stream_of(uint64_t stream) const {
    const auto handle = reinterpret_cast<CuStream>(static_cast<uintptr_t>(stream));
    CuContext owner = nullptr;
    const Current current(*shop_.context);
    if (driver().stream_context(handle, &owner) != CuResult::success || owner != shop_.context->handle())
      return Error{Reason::bad_usage, "The CUDA stream is not of the primary context of '" + shop_.context->device().name +
                                          "'; give one of that device's."};
    return handle;
  }
  // What the kernels of a submission may find in their data. What those that are complete have to say is read when others come;
  // errors are kept for who waits later.
  struct Asked {
    std::shared_ptr<DeviceBuffer> reports;
    std::shared_ptr<const std::vector<ReportingLaunch>> launches;
    std::optional<Error> error;
  };
  static constexpr size_t kMostErrors = 64;
  void ask(Token token, std::shared_ptr<DeviceBuffer> reports, std::shared_ptr<const std::vector<ReportingLaunch>> launches) {
    const auto complete = lines_[kCompute].reached();
    const std::lock_guard lock(mutex_);
    size_t errors = 0;
    for (auto at = asked_.begin(); at != asked_.end();) {
      if (complete.ok() && (at->first & kNumber) <= *complete) read(at->second);
      const bool silent = !at->second.reports && !at->second.error;
      errors += at->second.error.has_value();
      at = silent ? asked_.erase(at) : std::next(at);
    }
    for (auto at = asked_.begin(); at != asked_.end() && errors > kMostErrors;) {
      errors -= at->second.error.has_value();
      at = at->second.error ? asked_.erase(at) : std::next(at);
    }
    asked_[token.value] = {std::move(reports), std::move(launches), {}};
  }
  static void read(Asked& asked) {
    if (!asked.reports) return;
    asked.error =
        take_bounds_report({reinterpret_cast<BoundsReports*>(asked.reports->host()), asked.launches->size()}, *asked.launches);
    asked.reports.reset();
  }
  // Of a submission that is complete.
  Status answer(Token token) {
    const std::lock_guard lock(mutex_);
    const auto at = asked_.find(token.value);
    if (at == asked_.end()) return ok();
    read(at->second);
    if (at->second.error) return *at->second.error;
    asked_.erase(at);
    return ok();
  }
  // Notes where an error says that nothing works any more.
  Error heard(Error error) {
    if (error.reason == Reason::device_lost) lost_ = true;
    return error;
  }
  Status heard(Status status) {
    if (!status.ok() && status.error().reason == Reason::device_lost) lost_ = true;
    return status;
  }
  Error lost_error() const {
    return {Reason::device_lost,
            "The CUDA device '" + device().name + "' stopped answering; start again, or use --device cpu."};
  }
  Error no_kernel(const Stage& stage) const {
    const std::string family(name_of(stage.family()));
    std::string denied;
    for (const std::string& finding : findings())
      if (finding.starts_with(family + "/")) denied += (denied.empty() ? "; banned are " : ", ") + finding;
    return {Reason::no_kernel, (factory_of(stage.family()) ? "no CUDA kernel of the " + family + " family supports it"
                                                           : "there is no CUDA kernel for the " + family + " family") +
                                   denied + "; use --device vulkan or cpu"};
  }
  // The planner sees another device from now on; references to the one before stay good.
  void update_denylist() {
    Device changed = device();
    changed.denylist = verdict_cache_->denylist();
    const std::lock_guard lock(mutex_);
    devices_.push_back(std::move(changed));
  }
  // Of a device that is given up: what its work may still touch stays as it is until the process ends.
  void leak() {
    static std::mutex mutex;
    static auto* const all = new std::vector<std::pair<Workshop, std::vector<Timeline::Kept>>>;
    const std::lock_guard lock(mutex);
    for (Timeline& t : lines_) all->emplace_back(shop_, t.leave());
  }

  const CudaOptions options_;
  std::list<Device> devices_;  // as the planner saw it, the last one now
  std::shared_ptr<Executor> executor_;
  MakeKernel make_;
  Workshop shop_;
  std::unique_ptr<VerdictCache> verdict_cache_;
  Timeline lines_[kLines];
  std::mutex submit_mutex_, probe_mutex_;
  RoofBuffers probed_;
  mutable std::mutex mutex_;
  std::deque<std::pair<uint64_t, std::vector<std::shared_ptr<Event>>>> timed_;
  std::map<uint64_t, Asked> asked_;  // by the token's value
  std::atomic<bool> lost_{false}, given_up_{false};
  std::atomic<uint64_t> submissions_{0}, graphs_{0};
};

}  // namespace

Result<std::shared_ptr<DeviceBuffer>> Workshop::upload(const void* bytes, int64_t size) const {
  if (!memory) return std::make_shared<DeviceBuffer>(CuAddress{0}, size);
  SPARKLE_TRY(staging, memory->allocate(size, true));
  SPARKLE_TRY(buffer, memory->allocate(size, false));
  std::memcpy(staging->host(), bytes, static_cast<size_t>(size));
  const Driver& d = context->driver();
  const Current current(*context);
  const CuStream stream = context->stream(kUpload);
  SPARKLE_CU(d, d.copy(buffer->address(), staging->address(), static_cast<size_t>(size), stream), "cuMemcpyAsync");
  SPARKLE_TRY(event, Event::record(context, stream, false));
  SPARKLE_CU(d, d.event_synchronize(event->handle()), "cuEventSynchronize");
  return buffer;
}

Result<std::shared_ptr<CudaBackend>> make_cuda_backend(std::shared_ptr<Driver> driver, size_t index, const CudaOptions& options,
                                                       std::shared_ptr<Executor> executor, MakeKernel make) {
  SPARKLE_TRY(context, Context::open(std::move(driver), index));
  auto backend = std::make_shared<BackendOfDevice>(std::move(context), options, std::move(executor), std::move(make));
  SPARKLE_CHECK(backend->open());
  return std::shared_ptr<CudaBackend>(std::move(backend));
}

// Code of nvcc 13 runs on drivers of its major version and later; the functions that are called came with CUDA 12.0.
int least_driver() { return code_images().empty() ? 12000 : 13000; }

}  // namespace sparkle::cuda
