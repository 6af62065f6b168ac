// Context: a device's primary context, which the CUDA runtime and other libraries of the process use too; its streams, and
// events that tell when work is done.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/driver/driver.h"

namespace sparkle::cuda {

class Context {
 public:
  // SPARKLE_CUDA_EDGES=full in the environment: graphs without programmatic edges, to compare with. Errors: device_unusable
  // saying why, bad_usage for another value there, and what the driver says.
  static Result<std::shared_ptr<Context>> open(std::shared_ptr<Driver> driver, size_t index);
  // Of a device that is only described: nothing may be asked of its driver.
  static std::shared_ptr<Context> described(Device description);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const DeviceInfo& device() const { return described_ ? *described_ : driver_->devices()[index_]; }
  CuContext handle() const { return context_; }
  static constexpr size_t kStreams = 3;
  CuStream stream(size_t i) const { return streams_[i]; }
  // Why a kernel of a graph begins when those before it are over, and no earlier; empty: it may, by a programmatic edge.
  std::string full_edges() const;
  // From here on, for this reason. Whether it is the first one.
  bool use_full_edges(const std::string& why);

 private:
  Context() = default;
  std::shared_ptr<Driver> driver_;
  size_t index_ = 0;
  std::optional<DeviceInfo> described_;
  CuContext context_ = nullptr;
  CuStream streams_[kStreams] = {};
  mutable std::mutex mutex_;
  std::string full_edges_;
};

// Makes a context the calling thread's for as long as this lives, whatever was current before.
class Current {
 public:
  explicit Current(const Context& context) : driver_(context.driver()) {
    pushed_ = driver_.context_push(context.handle()) == CuResult::success;
  }
  ~Current() {
    CuContext popped = nullptr;
    if (pushed_) driver_.context_pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

// A place in a stream. Whoever holds it may wait for it.
class Event {
 public:
  // `timed`: it tells the time too. Errors: what the driver says.
  static Result<std::shared_ptr<Event>> record(std::shared_ptr<Context> context, CuStream stream, bool timed);
  // One that stands nowhere yet, and putting it there.
  static Result<std::shared_ptr<Event>> make(std::shared_ptr<Context> context, bool timed);
  Status put(CuStream stream) const;
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  CuEvent handle() const { return event_; }

 private:
  Event(std::shared_ptr<Context> context, CuEvent event) : context_(std::move(context)), event_(event) {}
  std::shared_ptr<Context> context_;
  CuEvent event_;
};

}  // namespace sparkle::cuda
