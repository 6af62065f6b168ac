// A device of the tests' own with a queue for copies beside the one that computes, as cards have: each takes its pieces in the
// order of their submission, and a piece that waits for one of the other queue holds up all behind it. Begins and ends are
// recorded, and a test says when a piece may end. It computes as the reference does.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/reference/reference_backend.h"

namespace sparkle::testing {

enum class DevicePiece : uint8_t { upload, compute, download };
struct DeviceEvent {
  DevicePiece piece = DevicePiece::upload;
  int item = 0;  // pieces of a kind are counted
  bool end = false;
  bool operator==(const DeviceEvent&) const = default;
};
using DeviceEvents = std::vector<DeviceEvent>;
// Where in the record; its size: nowhere.
inline size_t place_of(const DeviceEvents& events, DevicePiece piece, int item, bool end) {
  return static_cast<size_t>(std::find(events.begin(), events.end(), DeviceEvent{piece, item, end}) - events.begin());
}
inline bool has_ended(const DeviceEvents& events, DevicePiece piece, int item) {
  return place_of(events, piece, item, true) < events.size();
}

class TwoQueues final : public Backend {
 public:
  static constexpr std::chrono::seconds kLongest{30};  // that a piece waits for leave to end
  using MayEnd = std::function<bool(const DeviceEvents&, DevicePiece, int item)>;

  TwoQueues() {
    for (Queue& queue : queues_) queue.thread = std::thread([this, &queue] { work(queue); });
  }
  ~TwoQueues() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (Queue& queue : queues_) queue.thread.join();
  }
  // From here on pieces are counted from 0 and end when they may. The first copy is handed over once open() was called: until
  // then a pipeline has not begun its first item.
  void watch(MayEnd may_end) {
    const std::lock_guard lock(mutex_);
    may_end_ = std::move(may_end), counted_ = {}, events_.clear(), open_ = false;
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  // Asks again whether pieces may end, after something that the record does not have.
  void look_again() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  DeviceEvents events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  // Whether a piece was not given leave to end within the time.
  bool late() {
    const std::lock_guard lock(mutex_);
    return late_;
  }

  const Device& device() const override { return under_->device(); }
  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override { return under_->allocate(bytes, kind); }
  Result<std::shared_ptr<Buffer>> import(void*, int64_t) override { return std::shared_ptr<Buffer>(); }
  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    return under_->compile(stage, schedule, constants);
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override { return under_->record(launches); }
  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    const std::vector<Buffer*> places(slots.begin(), slots.end());
    return put(0, DevicePiece::compute, options.after, [this, &program, places, keep = options.keep_alive] {
      const auto token = under_->submit(program, places, {});
      const Status status = token.ok() ? under_->wait(*token) : Status(token.error());
      if (keep) keep->clear();
      return status;
    });
  }
  Result<Token> copy(std::span<const CopyRegion> regions, Token after) override {
    const std::vector<CopyRegion> parts(regions.begin(), regions.end());
    const bool up = !parts.empty() && parts[0].from->host() != nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLongest, [&] { return open_; });
    }
    return put(1, up ? DevicePiece::upload : DevicePiece::download, after, [this, parts] {
      const auto token = under_->copy(parts, {});
      return token.ok() ? under_->wait(*token) : Status(token.error());
    });
  }
  bool done(Token token) override {
    const std::lock_guard lock(mutex_);
    return complete(token);
  }
  Status wait(Token token, std::chrono::nanoseconds) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return complete(token); });
    return status_;
  }
  Result<std::vector<StepTime>> timestamps(Token) override { return Error{Reason::bad_usage, "It keeps no time."}; }
  void keep_until(Token, std::vector<std::shared_ptr<void>> kept) override {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(kept));  // as long as there is the device
  }
  bool can_be_lost() const override { return true; }
  Executor& executor() override { return under_->executor(); }

 private:
  static constexpr uint64_t kCopies = uint64_t{1} << 63;  // of tokens
  struct Job {
    DeviceEvent event;
    Token after;
    std::function<Status()> work;
  };
  struct Queue {
    std::deque<Job> jobs;
    uint64_t given = 0, complete = 0;
    std::thread thread;
  };
  bool complete(Token token) const { return queues_[token.value & kCopies ? 1 : 0].complete >= (token.value & ~kCopies); }
  Token put(size_t queue, DevicePiece piece, Token after, std::function<Status()> job) {
    const std::lock_guard lock(mutex_);
    queues_[queue].jobs.push_back({{piece, counted_[static_cast<size_t>(piece)]++, false}, after, std::move(job)});
    changed_.notify_all();
    return {++queues_[queue].given | (queue ? kCopies : 0)};
  }
  void work(Queue& queue) {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return ended_ || !queue.jobs.empty(); });
      if (queue.jobs.empty()) return;
      Job job = std::move(queue.jobs.front());
      queue.jobs.pop_front();
      changed_.wait(lock, [&] { return complete(job.after); });
      events_.push_back(job.event);
      changed_.notify_all();
      lock.unlock();
      Status status = job.work();
      lock.lock();
      const auto may_end = [&] { return !may_end_ || may_end_(events_, job.event.piece, job.event.item); };
      if (!changed_.wait_for(lock, late_ ? std::chrono::seconds(0) : kLongest, may_end)) late_ = true;
      job.event.end = true;
      events_.push_back(job.event);
      if (status_.ok()) status_ = std::move(status);
      ++queue.complete;
      changed_.notify_all();
    }
  }

  const std::shared_ptr<Backend> under_ = make_reference_backend();
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::array<Queue, 2> queues_;  // that computes, that copies
  MayEnd may_end_;
  std::array<int, 3> counted_{};
  DeviceEvents events_;
  std::vector<std::vector<std::shared_ptr<void>>> kept_;
  Status status_ = ok();
  bool open_ = true, ended_ = false, late_ = false;
};

}  // namespace sparkle::testing
