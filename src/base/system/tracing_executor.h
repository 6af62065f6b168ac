// An Executor before another one that puts down when each task ran, and in which worker: for pictures of a run. Without it the
// pool knows nothing of traces.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/system/executor.h"

namespace sparkle {

// Seconds since whatever the trace began with.
struct TaskSpan {
  int step = 0, worker = 0;
  double begin = 0, end = 0;
};

class TracingExecutor final : public Executor {
 public:
  using Clock = std::chrono::steady_clock;
  // Of each worker; what comes after it is left out, so that no worker allocates.
  static constexpr size_t kMostSpans = 1 << 15;

  TracingExecutor(Executor& inner, Clock::time_point start);
  int width() const override { return inner_.width(); }
  void run(int tasks, Work work, void* context) override;
  void set_step(int step) { step_ = step; }  // of the tasks to come
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // All of them, in the order in which they began.
  std::vector<TaskSpan> spans() const;
  int64_t left_out() const;  // how many ran beyond those

 private:
  struct alignas(64) Own {
    std::vector<TaskSpan> spans;
    int64_t left_out = 0;
  };
  Executor& inner_;
  Clock::time_point start_;
  int step_ = 0;
  std::vector<Own> of_worker_;
};

}  // namespace sparkle
