// PerWorker: what each worker of a job keeps for itself, made by the worker in its first task. Lists that a caller writes for
// all in every run lie in the caches of those who read them the run before: each line is taken from there before it can be
// written, and fetched again after (some 50 ns each, docs/performance.md), which is longer than computing the list twice.
#pragma once

#include <memory>
#include <vector>

#include "base/system/executor.h"

namespace sparkle {

template <class T>
class PerWorker {
 public:
  explicit PerWorker(const Executor& executor) : own_(static_cast<size_t>(executor.width())) {}
  // make(T&) fills a new one.
  template <class Make>
  T& of(int worker, Make&& make) {
    std::unique_ptr<T>& own = own_[static_cast<size_t>(worker)];
    if (!own) {
      own = std::make_unique<T>();
      make(*own);
    }
    return *own;
  }

 private:
  std::vector<std::unique_ptr<T>> own_;
};

}  // namespace sparkle
