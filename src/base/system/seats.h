// Which CPU a thread runs on, and how it gets away from one. A worker that wakes up is often put beside the thread that woke
// it, and stays there while another CPU has nothing to do: both then share one, for as long as jobs are short.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <sys/types.h>
#include <time.h>
#endif

namespace sparkle {

// Of the calling thread at this moment; -1 where the system does not tell.
int current_cpu();

// Those of `cpus` that a worker may have beside a caller on `taken`: other cores, else other threads of that core, else all.
// `core_of`: of each CPU by its number, -1 and what it does not hold are cores of their own.
std::vector<int> cpus_beside(int taken, const std::vector<int>& cpus, const std::vector<int>& core_of);

// Of one worker. The CPUs that it may have are those of the thread that sits down, or what somebody gives it later (taskset).
class Seat {
 public:
  // The worker itself, before anything else. Without `core_of` each CPU is as good as another.
  void sit_down(const std::vector<int>& core_of = {});
  // The worker, when a job reaches it: where it will be looked for.
  void rest() {
    if (const int cpu = current_cpu(); cpu != cpu_.load(std::memory_order_relaxed)) cpu_.store(cpu, std::memory_order_relaxed);
  }
  // The worker where it runs on the core of `taken`, or whoever is about to wake it where it rested there: it moves to another
  // of its CPUs. Not more than once in a millisecond, for a migration costs more than a short job.
  void leave(int taken);
  // Nanoseconds for which the worker has run so far: as many as before where it waits for a CPU. -1: unknown.
  int64_t ran() const;
  // Somebody who is about to sleep on `free`: the worker goes on there now, and may be anywhere afterwards.
  void come(int free);

 private:
  std::atomic<int> cpu_{-1};
  std::atomic<bool> movable_{false};  // the fields below are set
  std::vector<int> core_of_;
#if defined(__linux__)
  bool hear();  // takes somebody else's word for the CPUs that it may have; false where it cannot be asked

  std::mutex moving_;
  std::chrono::steady_clock::time_point moved_{};
  cpu_set_t cpus_, given_;  // all that it may have; of these, those that leave() left it
  pid_t thread_ = 0;
  clockid_t clock_ = 0;  // of the time that the worker has run
#endif
};

}  // namespace sparkle
