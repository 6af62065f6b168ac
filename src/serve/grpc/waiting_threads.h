// Threads for what waits: one more is started whenever none is free, up to a number; what comes then waits for one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace sparkle::serve {

class WaitingThreads {
 public:
  explicit WaitingThreads(size_t most) : most_(most) {}
  ~WaitingThreads() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

  // False where the system has no thread at all for it.
  bool run(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (free_ <= work_.size() && threads_.size() < most_) {
      try {
        threads_.emplace_back([this] { loop(); });
        ++free_;
      } catch (const std::system_error&) {
        if (threads_.empty()) return false;
      }
    }
    work_.push_back(std::move(work));
    changed_.notify_one();
    return true;
  }

 private:
  void loop() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      const auto work = std::move(work_.front());
      work_.pop_front();
      --free_;
      lock.unlock();
      work();
      lock.lock();
      ++free_;
    }
  }
  const size_t most_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::vector<std::thread> threads_;
  size_t free_ = 0;  // that wait for work, or are about to
  bool ending_ = false;
};

}  // namespace sparkle::serve
