// Which CPU a thread runs on, and how it gets away from one. A worker that wakes up is often put beside the thread that woke
// it, and stays there while another CPU has nothing to do: both then share one, for as long as jobs are short.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#if defined(__linux__)
#include <sched.h>
#include <sys/types.h>
#endif

namespace sparkle {

// Of the calling thread at this moment; -1 where the system does not tell.
int current_cpu();

// Of one worker. The CPUs that it may have are those of the thread that sits down, or what somebody gives it later (taskset).
class Seat {
 public:
  // The worker itself, before anything else.
  void sit_down();
  // The worker, when a job reaches it: where it will be looked for.
  void rest() {
    if (const int cpu = current_cpu(); cpu != cpu_.load(std::memory_order_relaxed)) cpu_.store(cpu, std::memory_order_relaxed);
  }
  // The worker where it runs on `taken`, or whoever is about to wake it where it rested there: it moves to another of its CPUs.
  // Not more than once in a millisecond, for a migration costs more than a short job.
  void leave(int taken);

 private:
  std::atomic<int> cpu_{-1};
  std::atomic<bool> movable_{false};  // the fields below are set
#if defined(__linux__)
  std::mutex moving_;
  std::chrono::steady_clock::time_point moved_{};
  cpu_set_t cpus_, given_;  // all that it may have; of these, those that leave() left it
  pid_t thread_ = 0;
#endif
};

}  // namespace sparkle
