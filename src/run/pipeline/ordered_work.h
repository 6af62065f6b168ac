// OrderedWork: the same work on items 0, 1, 2 ... by some threads, results in order, never more than a window of items ahead of
// who takes them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sparkle {

template <class T>
class OrderedWork {
 public:
  // `work` is called by several threads at once, for `begin` <= item < `end`.
  OrderedWork(int64_t begin, int64_t end, int threads, int64_t window, std::function<T(int64_t)> work)
      : next_(begin), taken_(begin), end_(end), window_(window < 1 ? 1 : window), work_(std::move(work)) {
    for (int i = 0; i < (threads < 1 ? 1 : threads); ++i) threads_.emplace_back([this] { run(); });
  }
  // What nobody has begun is left undone.
  ~OrderedWork() {
    {
      const std::lock_guard lock(mutex_);
      end_ = next_;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  // The result of the next item; waits for it. May be called for as many items as there are.
  T take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.contains(taken_); });
    T result = std::move(ready_.extract(taken_).mapped());
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return result;
  }

 private:
  void run() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return next_ >= end_ || next_ < taken_ + window_; });
      if (next_ >= end_) return;
      const int64_t item = next_++;
      lock.unlock();
      T result = work_(item);
      lock.lock();
      ready_.emplace(item, std::move(result));
      changed_.notify_all();
    }
  }

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  int64_t next_, taken_, end_;
  const int64_t window_;
  const std::function<T(int64_t)> work_;
  std::map<int64_t, T> ready_;
  std::vector<std::thread> threads_;
};

}  // namespace sparkle
