// ThreadPool: Sparkle's own Executor. Workers take tasks one by one from a counter, so a slow core takes fewer; the caller
// works too. Between jobs a worker spins for a moment - the next layer is usually microseconds away - and then sleeps.
// A second caller, while the workers are busy, runs its own tasks in its own thread and gets the workers when they are free.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/executor.h"

namespace sparkle {

struct ThreadPoolOptions {
  int threads = 0;               // workers with the caller; 0: usable_threads()
  bool flush_denormals = false;  // in the workers always, in the caller during run(); see base/denormals.h
  // How long an idle worker spins before it sleeps. Long spinning starves neighbours on shared cores: with 2 ms between
  // jobs a long-spin pool answered in 5.9 ms where a sleeping one took 8 us (two shared cores, noted 2026).
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
  void run(int tasks, void (*work)(void* context, int task, int worker), void* context) override;
  // Why the pool has this width: "2 threads (affinity 2, cgroup quota none)".
  const std::string& note() const { return note_; }

 private:
  struct Job;
  static constexpr uint32_t kOpen = 1u << 31;
  static void drain(Job& job, int worker);
  void worker_loop(int worker);
  bool try_publish(Job& job);
  void retire();

  // Lines of their own: the counters are written by all, the rest is read by all.
  alignas(64) std::atomic<uint32_t> epoch_{0};      // counts published jobs; idle workers wait for it to change
  alignas(64) std::atomic<uint32_t> gate_{0};       // kOpen while job_ may be entered, plus the number of workers inside
  alignas(64) std::atomic<bool> published_{false};  // the slot job_ is taken by some caller
  alignas(64) Job* job_ = nullptr;                  // read only by a worker that came through the open gate
  std::atomic<bool> stopping_{false};
  bool flush_denormals_;
  double spin_seconds_;
  std::string note_;
  std::vector<std::thread> workers_;
};

}  // namespace sparkle
