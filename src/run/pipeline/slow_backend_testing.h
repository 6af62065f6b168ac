// A device of the tests' own: memory that the host cannot reach, work that completes on a thread of its own in the order of its
// submission, and faults at a call that a test names. It computes as the reference does, or as another backend.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "backends/reference/reference_backend.h"

namespace sparkle::testing {

class SlowBackend final : public Backend {
 public:
  explicit SlowBackend(std::shared_ptr<Backend> under = make_reference_backend())
      : under_(std::move(under)), worker_([this] { work(); }) {}
  ~SlowBackend() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true, held_ = false;
    }
    changed_.notify_all();
    worker_.join();
  }

  // Nothing completes until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  // The call of this number from here on (kernels compiled, programs recorded, allocations, copies, submissions, waits) fails;
  // a device that is lost stays so, and so does one whose driver is the wrong one (device_unusable).
  void fail_at(int call, Reason reason) {
    const std::lock_guard lock(mutex_);
    calls_ = 0, fail_at_ = call, reason_ = reason;
  }
  bool failed() const { return failed_; }
  // From here on each program waits for a permit: what the device does is counted, and no clock is needed.
  void meter() {
    const std::lock_guard lock(mutex_);
    metered_ = true;
  }
  void permit(int programs) {
    {
      const std::lock_guard lock(mutex_);
      permits_ += programs;
    }
    changed_.notify_all();
  }
  // Programs that came to their end.
  int completed() const { return completed_; }
  // Each program takes up to so many microseconds more, by chance.
  void dawdle(int most, unsigned seed) { most_delay_ = most, random_.seed(seed); }
  // Called once, at the next copy, when that has been handed over.
  void at_copy(std::function<void()> call) { at_copy_ = std::move(call); }
  // Who waits for the program of this number from here on, and nobody else, is told that it met an index that is none.
  void find_bad_index_at(int program) {
    const std::lock_guard lock(mutex_);
    until_bad_index_ = program;
  }
  // Whether a copy ran over memory that had been freed meanwhile.
  bool touched_freed() const { return touched_freed_; }
  // Programs that were submitted and are not complete.
  int under_way() const { return under_way_; }

  const Device& device() const override { return under_->device(); }
  Result<std::shared_ptr<Buffer>> allocate(int64_t bytes, MemoryKind kind) override {
    SPARKLE_CHECK(fault());
    SPARKLE_TRY(buffer, under_->allocate(bytes, kind));
    if (kind == MemoryKind::staging) return std::shared_ptr<Buffer>(std::make_shared<Staging>(std::move(buffer), live_));
    return std::shared_ptr<Buffer>(std::make_shared<Hidden>(std::move(buffer), live_));
  }
  Result<std::shared_ptr<Buffer>> import(void*, int64_t) override { return std::shared_ptr<Buffer>(); }
  Result<std::unique_ptr<Kernel>> compile(const Stage& stage, const Schedule& schedule, uint32_t constants) override {
    SPARKLE_CHECK(fault());
    return under_->compile(stage, schedule, constants);
  }
  Result<std::unique_ptr<Program>> record(std::span<const Launch> launches) override {
    SPARKLE_CHECK(fault());
    return under_->record(launches);
  }
  Result<Token> submit(const Program& program, std::span<Buffer* const> slots, const SubmitOptions& options) override {
    SPARKLE_CHECK(fault());
    std::vector<Buffer*> shown;
    for (Buffer* slot : slots) shown.push_back(shown_of(slot));
    ++under_way_;
    const auto timed = std::make_shared<Token>();
    const Token handed = put([this, &program, shown, timed, timestamps = options.timestamps, keep = options.keep_alive] {
      take_permit();
      const auto token = under_->submit(program, shown, {{}, timestamps, nullptr});
      if (token.ok()) *timed = *token;
      Status status = token.ok() ? under_->wait(*token) : Status(token.error());
      if (keep) keep->clear();
      --under_way_, ++completed_;
      return status;
    });
    if (options.timestamps) timed_[handed.value] = timed;
    const std::lock_guard lock(mutex_);
    if (until_bad_index_-- == 0) bad_index_ = handed;
    return handed;
  }
  Result<Token> copy(std::span<const CopyRegion> regions, Token) override {
    SPARKLE_CHECK(fault());
    std::vector<CopyRegion> shown(regions.begin(), regions.end());
    for (CopyRegion& r : shown) r.from = shown_of(r.from), r.to = shown_of(r.to);
    count_copy();
    std::vector<const Buffer*> touched;
    for (const CopyRegion& r : regions) touched.push_back(r.from), touched.push_back(r.to);
    const Token handed = put([this, shown, touched] {
      if (!live_->all(touched)) {
        touched_freed_ = true;
        return ok();
      }
      const auto token = under_->copy(shown, {});
      return token.ok() ? under_->wait(*token) : Status(token.error());
    });
    if (const auto call = std::exchange(at_copy_, {})) call();
    return handed;
  }
  bool done(Token token) override {
    const std::lock_guard lock(mutex_);
    return complete_ >= token.value;
  }
  Status wait(Token token, std::chrono::nanoseconds) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return complete_ >= token.value; });
    if (bad_index_.value != 0 && token.value == bad_index_.value) return Error{Reason::bad_input, "Index 9 is none."};
    lock.unlock();
    return fault();
  }
  // Of one run at a time.
  Result<std::vector<StepTime>> timestamps(Token token) override { return under_->timestamps(*timed_.at(token.value)); }
  void keep_until(Token, std::vector<std::shared_ptr<void>> kept) override {
    put([kept = std::move(kept)] { return ok(); });
  }
  bool can_be_lost() const override { return true; }
  bool lost() const override { return lost_; }
  Executor& executor() override { return under_->executor(); }

 private:
  // The buffers that there are.
  class Live {
   public:
    void put(const Buffer* buffer) {
      const std::lock_guard lock(mutex_);
      buffers_.insert(buffer);
    }
    void drop(const Buffer* buffer) {
      const std::lock_guard lock(mutex_);
      buffers_.erase(buffer);
    }
    bool all(const std::vector<const Buffer*>& wanted) {
      const std::lock_guard lock(mutex_);
      for (const Buffer* buffer : wanted)
        if (!buffers_.contains(buffer)) return false;
      return true;
    }

   private:
    std::mutex mutex_;
    std::set<const Buffer*> buffers_;
  };
  struct Counted : Buffer {
    Counted(std::shared_ptr<Buffer> buffer, std::shared_ptr<Live> list) : under(std::move(buffer)), live(std::move(list)) {
      live->put(this);
    }
    ~Counted() override { live->drop(this); }
    int64_t bytes() const override { return under->bytes(); }
    uint64_t address() const override { return under->address(); }
    std::shared_ptr<Buffer> under;
    std::shared_ptr<Live> live;
  };
  struct Hidden final : Counted {
    using Counted::Counted;
  };
  struct Staging final : Counted {
    using Counted::Counted;
    std::byte* host() override { return under->host(); }
  };
  static Buffer* shown_of(Buffer* buffer) {
    const auto* counted = dynamic_cast<Counted*>(buffer);
    return counted ? counted->under.get() : buffer;
  }
  Status fault() {
    const std::lock_guard lock(mutex_);
    if (lost_) return Error{Reason::device_lost, "The device is lost."};
    const bool stays = failed_ && reason_ == Reason::device_unusable;
    if (!stays && (fail_at_ < 0 || calls_++ != fail_at_)) return ok();
    failed_ = true;
    if (reason_ == Reason::device_lost) lost_ = true;
    return Error{reason_, "The device fails as the test wants it."};
  }
  // By the device's own thread.
  void take_permit() {
    if (most_delay_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % static_cast<unsigned>(most_delay_)));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || !metered_ || permits_ > 0; });
    if (metered_) --permits_;
  }
  Token put(std::function<Status()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_all();
    return {++given_};
  }
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return ended_ || (!held_ && !jobs_.empty()); });
      if (jobs_.empty()) return;
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      const Status status = job();
      lock.lock();
      if (!status.ok()) lost_ = true;
      ++complete_;
      changed_.notify_all();
    }
  }

  const std::shared_ptr<Backend> under_;
  std::map<uint64_t, std::shared_ptr<Token>> timed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<Status()>> jobs_;
  uint64_t given_ = 0, complete_ = 0;
  bool held_ = false, ended_ = false;
  std::shared_ptr<Live> live_ = std::make_shared<Live>();
  std::function<void()> at_copy_;
  int until_bad_index_ = -1;
  Token bad_index_;
  std::atomic<bool> lost_{false}, failed_{false}, touched_freed_{false};
  std::atomic<int> under_way_{0}, completed_{0};
  int permits_ = 0, most_delay_ = 0;
  bool metered_ = false;
  std::minstd_rand random_;
  int calls_ = 0, fail_at_ = -1;
  Reason reason_ = Reason::none;
  std::thread worker_;
};

}  // namespace sparkle::testing
