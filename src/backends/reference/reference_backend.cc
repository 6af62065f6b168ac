#include "backends/reference/reference_backend.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/system/out_of_memory.h"
#include "families/registry.h"

namespace sparkle {
namespace {

using Clock = std::chrono::steady_clock;

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(int64_t bytes, bool visible) : storage_(static_cast<size_t>(bytes) + 64), bytes_(bytes), visible_(visible) {}
  int64_t bytes() const override { return bytes_; }
  std::byte* host() override { return visible_ ? storage_.data() : nullptr; }
  std::byte* device() { return storage_.data(); }

 private:
  std::vector<std::byte> storage_;
  int64_t bytes_;
  bool visible_;
};

class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(const Stage& s) : stage(s) {}
  Stage stage;
};

class ReferenceProgram final : public Program {
 public:
  std::vector<Launch> launches;
};

std::byte* address(Buffer* buffer) { return static_cast<DeviceBuffer*>(buffer)->device(); }

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend() : device_(reference_device()), worker_([this] { work(); }) {}
  ~ReferenceBackend() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  const Device& device() const override { return device_; }
  Executor& executor() override { return inline_; }
  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    try {
      return std::shared_ptr<Buffer>(std::make_shared<DeviceBuffer>(bytes, kind == MemoryKind::staging));
    } catch (const std::exception&) {  // bad_alloc, or length_error beyond what a vector can hold
      return Error{Reason::out_of_memory,
                   "The reference device cannot allocate " + std::to_string(bytes) + " bytes; give smaller inputs."};
    }
  }
  Result<std::shared_ptr<Buffer>> import(void*, int64_t) override { return std::shared_ptr<Buffer>(); }
  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule&, uint32_t) override {
    return std::unique_ptr<Kernel>(std::make_unique<ReferenceKernel>(stage));
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    auto program = std::make_unique<ReferenceProgram>();
    program->launches.assign(launches.begin(), launches.end());
    return std::unique_ptr<Program>(std::move(program));
  }

  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    const auto& launches = static_cast<const ReferenceProgram&>(program).launches;
    std::vector<Buffer*> buffers(slots.begin(), slots.end());
    const bool timestamps = options.timestamps;
    return enqueue([this, &launches, buffers, timestamps, keep = options.keep_alive](uint64_t token) {
      std::vector<StepTime> times;
      const auto start = Clock::now();
      const auto now = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
      for (const Launch& launch : launches) {
        const Stage& stage = static_cast<const ReferenceKernel*>(launch.kernel)->stage;
        std::vector<TensorView> inputs, outputs;
        for (size_t i = 0; i < stage.inputs.size(); ++i)
          inputs.push_back(
              {address(buffers[static_cast<size_t>(launch.inputs[i].slot)]) + launch.inputs[i].offset_bytes, stage.inputs[i]});
        for (size_t i = 0; i < stage.outputs.size(); ++i)
          outputs.push_back({address(buffers[static_cast<size_t>(launch.outputs[i].slot)]) + launch.outputs[i].offset_bytes,
                             stage.outputs[i]});
        if (Status status = check_data(stage, inputs, launch.name); !status.ok()) {
          const std::lock_guard lock(mutex_);
          errors_[token] = status.take_error();
          while (errors_.size() > 16) errors_.erase(errors_.begin());  // those that nobody waited for
          return;
        }
        const double begin = now();
        info(stage.family()).reference(stage.params, inputs, outputs);
        times.push_back({begin, now()});
      }
      if (timestamps) {
        const std::lock_guard lock(mutex_);
        times_[token] = std::move(times);
        while (times_.size() > 16) times_.erase(times_.begin());
      }
    });
  }

  Result<Token> copy(std::span<const CopyRegion> regions, Token) override {
    std::vector<CopyRegion> list(regions.begin(), regions.end());
    return enqueue([list](uint64_t) {
      for (const CopyRegion& r : list)
        std::memcpy(address(r.to) + r.to_offset, address(r.from) + r.from_offset, static_cast<size_t>(r.bytes));
    });
  }

  bool done(Token token) override {
    const std::lock_guard lock(mutex_);
    return completed_ >= token.value;
  }
  Status wait(Token token, std::chrono::nanoseconds timeout) override {
    std::unique_lock lock(mutex_);
    const auto complete = [&] { return completed_ >= token.value; };
    if (timeout.count() == 0) {
      changed_.wait(lock, complete);
    } else if (!changed_.wait_for(lock, timeout, complete)) {
      return Error{Reason::device_lost, "The reference device did not finish within the time given."};
    }
    // Data that breaks a rule concerns its own run alone.
    if (const auto at = errors_.find(token.value); at != errors_.end()) {
      Error error = std::move(at->second);
      errors_.erase(at);
      return error;
    }
    // Later work may rest on what failed: the first failure is everybody's.
    if (failed_ && failed_->first <= token.value) return failed_->second;
    return ok();
  }
  Result<std::vector<StepTime>> timestamps(Token token) override {
    const std::lock_guard lock(mutex_);
    const auto at = times_.find(token.value);
    if (at == times_.end()) return Error{Reason::bad_usage, "This submission was made without timestamps."};
    auto times = std::move(at->second);
    times_.erase(at);
    return times;
  }

 private:
  // One queue, in order: waiting for an earlier token is implied.
  Token enqueue(std::function<void(uint64_t)> job) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
    const Token token{++submitted_};
    changed_.notify_all();
    return token;
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto job = std::move(queue_.front());
      queue_.pop_front();
      const uint64_t token = completed_ + 1;
      lock.unlock();
      const Status done = guard_memory("The reference device", [&]() -> Status {
        job(token);
        return sparkle::ok();
      });
      job = nullptr;
      lock.lock();
      if (!done.ok() && !failed_) failed_ = {token, done.error()};
      completed_ = token;
      changed_.notify_all();
    }
  }

  Device device_;
  InlineExecutor inline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void(uint64_t)>> queue_;
  uint64_t submitted_ = 0, completed_ = 0;
  bool closing_ = false;
  std::optional<std::pair<uint64_t, Error>> failed_;
  std::map<uint64_t, std::vector<StepTime>> times_;
  std::map<uint64_t, Error> errors_;
  std::thread worker_;
};

}  // namespace

Device reference_device() {
  Device device;
  device.name = "reference";
  device.architecture = "plain";
  device.memory = {{"DRAM", 0, 0, 0, 1, false}};
  return device;
}

std::shared_ptr<Backend> make_reference_backend() { return std::make_shared<ReferenceBackend>(); }

}  // namespace sparkle
