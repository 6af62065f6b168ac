#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/cpu_count.h"
#include "base/denormals.h"

namespace sparkle {

namespace {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // yields for tens of cycles; the yield instruction itself is a no-op on most cores
#endif
}

// Waits until `done(value)`: spins for a while, then sleeps until notified. Returns the value that is done.
template <class DoneWith>
uint32_t await(const std::atomic<uint32_t>& word, double spin_seconds, DoneWith done) {
  using Clock = std::chrono::steady_clock;
  uint32_t value = word.load(std::memory_order_acquire);
  if (done(value)) return value;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(spin_seconds));
  do {
    for (int i = 0; i < 16; ++i) {
      relax();
      value = word.load(std::memory_order_acquire);
      if (done(value)) return value;
    }
  } while (Clock::now() < end);
  while (!done(value)) {
    word.wait(value, std::memory_order_acquire);
    value = word.load(std::memory_order_acquire);
  }
  return value;
}

}  // namespace

struct ThreadPool::Job {
  void (*work)(void* context, int task, int worker);
  void* context;
  uint32_t tasks;
  alignas(64) std::atomic<uint32_t> next{0};  // may run past `tasks` by the number of workers: 2^31 is far from overflow
};

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : flush_denormals_(options.flush_denormals), spin_seconds_(std::clamp(options.spin_seconds, 0.0, 1.0)) {
  ThreadCount count = usable_threads(options.threads);
  note_ = std::move(count.note);
  workers_.reserve(static_cast<size_t>(count.threads - 1));
  for (int worker = 1; worker < count.threads; ++worker) {
    try {
      workers_.emplace_back([this, worker] { worker_loop(worker); });
    } catch (const std::system_error&) {  // the system gives no more threads: work with those there are, and say so
      note_ += ", of which the system started only " + std::to_string(worker);
      break;
    }
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::drain(Job& job, int worker) {
  for (uint32_t task; (task = job.next.fetch_add(1, std::memory_order_relaxed)) < job.tasks;)
    job.work(job.context, static_cast<int>(task), worker);
}

void ThreadPool::worker_loop(int worker) {
  const ScopedFlushDenormals flush(flush_denormals_);
  uint32_t seen = 0;
  while (true) {
    seen = await(epoch_, spin_seconds_, [seen](uint32_t epoch) { return epoch != seen; });
    if (stopping_.load(std::memory_order_relaxed)) return;
    // A worker that comes late finds the gate closed, or enters a newer job: both are fine, it never sees a finished one.
    if (gate_.fetch_add(1, std::memory_order_acquire) & kOpen) drain(*job_, worker);
    const uint32_t before = gate_.fetch_sub(1);  // not weaker: notifying must not overtake it
    if (before == 1) gate_.notify_one();         // the last one out of a closed gate: its owner may be asleep in retire()
  }
}

bool ThreadPool::try_publish(Job& job) {
  if (published_.load(std::memory_order_relaxed) || published_.exchange(true, std::memory_order_acquire)) return false;
  job_ = &job;
  gate_.fetch_or(kOpen, std::memory_order_release);
  epoch_.fetch_add(1);
  const auto helpers = std::min<size_t>(job.tasks - 1, workers_.size());
  if (helpers < workers_.size() / 2) {
    for (size_t i = 0; i < helpers; ++i) epoch_.notify_one();
  } else {
    epoch_.notify_all();
  }
  return true;
}

// Closes the gate and waits for those inside: after it nobody touches the job.
void ThreadPool::retire() {
  gate_.fetch_and(~kOpen, std::memory_order_relaxed);
  await(gate_, spin_seconds_, [](uint32_t gate) { return gate == 0; });
  published_.store(false, std::memory_order_release);
}

void ThreadPool::run(int tasks, void (*work)(void* context, int task, int worker), void* context) {
  if (tasks <= 0) return;
  const ScopedFlushDenormals flush(flush_denormals_);
  Job job{work, context, static_cast<uint32_t>(tasks)};
  bool shared = false;
  while (true) {
    // Until the workers are had, nobody but the caller takes tasks: with one left there is nothing to share.
    if (!shared && !workers_.empty() && job.next.load(std::memory_order_relaxed) + 1 < job.tasks) shared = try_publish(job);
    const uint32_t task = job.next.fetch_add(1, std::memory_order_relaxed);
    if (task >= job.tasks) break;
    work(context, static_cast<int>(task), 0);
  }
  if (shared) retire();
}

}  // namespace sparkle
