// ThreadPool: Sparkle's own Executor. Each worker begins with its own share of the tasks, the same neighbours in every job, so
// that a layer finds in its core's cache what the layer before left there; who is done takes from the end of another share, so
// that one who is late keeps others waiting for the task in its hands alone. And where it waits for a CPU with that task, it
// gets the caller's, who waits too. The caller works too. Between jobs a worker spins for a moment - the next layer is usually
// microseconds away - and then sleeps; one that wakes up on the caller's CPU moves to another (seats.h). A second caller, while
// the workers are busy, runs its own tasks in its own thread and gets the workers when they are free.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/system/executor.h"

namespace sparkle {

struct ThreadPoolOptions {
  int threads = 0;               // workers with the caller; 0: usable_threads()
  bool flush_denormals = false;  // in the workers always, in the caller during run(); see base/system/denormals.h
  // How long an idle worker spins before it sleeps. Long spinning starves neighbours on shared cores: with 2 ms between
  // jobs a long-spin pool answered in 5.9 ms where a sleeping one took 8 us (two shared cores, noted 2026).
  // At most 10 us where there are more threads than the cgroup's quota of CPUs.
  double spin_seconds = 40e-6;
};

class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(const ThreadPoolOptions& options = {});
  explicit ThreadPool(int threads) : ThreadPool(ThreadPoolOptions{.threads = threads}) {}
  // No run() may be in progress.
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int width() const override { return static_cast<int>(workers_.size()) + 1; }
  // Safe from any number of threads at once, and from within a task (which then runs the inner tasks itself).
  void run(int tasks, Work work, void* context) override;
  // Why the pool has this width: "2 threads (affinity 2, cgroup quota none)".
  const std::string& note() const { return note_; }

 private:
  struct Share;
  static constexpr uint32_t kOpen = 1u << 31;
  void drain(int worker);
  void worker_loop(int worker);
  bool try_publish(uint32_t first, uint32_t tasks, Work work, void* context);
  void retire();

  // Lines of their own: the counters are written by all, the rest is read by all.
  alignas(64) std::atomic<uint32_t> epoch_{0};      // counts published jobs; idle workers wait for it to change
  alignas(64) std::atomic<uint32_t> gate_{0};       // kOpen while the job may be entered, plus the number of workers inside
  alignas(64) std::atomic<bool> published_{false};  // the job is some caller's
  std::atomic<int> caller_cpu_{-1};                 // where that caller began it: no place for a worker
  // The job: touched only by its caller and by workers that came through the open gate.
  alignas(64) Work work_ = nullptr;
  void* context_ = nullptr;
  std::unique_ptr<Share[]> shares_;  // one for each worker
  std::atomic<bool> stopping_{false};
  bool flush_denormals_;
  double spin_seconds_;
  std::string note_;
  std::vector<int> core_of_;  // of each CPU by its number, for seats; empty where threads are to share cores
  std::vector<std::thread> workers_;
};

}  // namespace sparkle
