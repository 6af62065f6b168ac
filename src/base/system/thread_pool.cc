#include "base/system/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/system/cpu_count.h"
#include "base/system/denormals.h"
#include "base/system/seats.h"

namespace sparkle {

namespace {

// Spinning takes from the kernels where threads use up their quota of CPU time: two of them with a quota of 1.5 and pauses of
// 60 us between runs take 0.93 of their time by it, and 0.99 without pauses. With no spinning at all 1.04 there (Zen 5).
constexpr double kQuotaSpin = 10e-6;
// How often a caller that waits for the last tasks looks whether their workers run, half a spin apart, before it sleeps.
constexpr int kLooks = 8;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // yields for tens of cycles; the yield instruction itself is a no-op on most cores
#endif
}

// Spins until `done(value)` or so long; whether it is done. `value` is the last one seen.
template <class DoneWith>
bool spin_until(const std::atomic<uint32_t>& word, uint32_t& value, double seconds, DoneWith done) {
  using Clock = std::chrono::steady_clock;
  value = word.load(std::memory_order_acquire);
  if (done(value)) return true;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    for (int i = 0; i < 16; ++i) {
      relax();
      value = word.load(std::memory_order_acquire);
      if (done(value)) return true;
    }
  } while (Clock::now() < end);
  return false;
}

// Sleeps until `done(value)`.
template <class DoneWith>
void sleep_until(const std::atomic<uint32_t>& word, uint32_t& value, DoneWith done) {
  while (!done(value)) {
    word.wait(value, std::memory_order_acquire);
    value = word.load(std::memory_order_acquire);
  }
}

}  // namespace

// Tasks [begin, end) not yet taken, in one word: the owner takes from the front, others from the back.
struct alignas(64) ThreadPool::Share {
  std::atomic<uint64_t> tasks{0};
  // Of the worker; the caller's own stays empty.
  alignas(64) std::atomic<bool> inside{false};  // of the gate
  int64_t ran = 0;                              // retire() alone: Seat::ran() a moment ago
  Seat seat;

  void set(uint32_t begin, uint32_t end) { tasks.store(pack(begin, end), std::memory_order_relaxed); }
  bool take(bool from_front, uint32_t& task) {
    uint64_t seen = tasks.load(std::memory_order_relaxed);
    while (true) {
      const auto begin = static_cast<uint32_t>(seen), end = static_cast<uint32_t>(seen >> 32);
      if (begin == end) return false;
      const uint64_t rest = from_front ? pack(begin + 1, end) : pack(begin, end - 1);
      if (tasks.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
        task = from_front ? begin : end - 1;
        return true;
      }
    }
  }
  static uint64_t pack(uint32_t begin, uint32_t end) { return begin | static_cast<uint64_t>(end) << 32; }
};

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : flush_denormals_(options.flush_denormals), spin_seconds_(std::clamp(options.spin_seconds, 0.0, 1.0)) {
  ThreadCount count = usable_threads(options.threads);
  note_ = std::move(count.note);
  if (count.over_quota) spin_seconds_ = std::min(spin_seconds_, kQuotaSpin);
  if (static_cast<size_t>(count.threads) <= count.core_list.size())
    for (size_t core = 0; core < count.core_list.size(); ++core)
      for (const int cpu : count.core_list[core].cpus) {
        if (static_cast<size_t>(cpu) >= core_of_.size()) core_of_.resize(static_cast<size_t>(cpu) + 1, -1);
        core_of_[static_cast<size_t>(cpu)] = static_cast<int>(core);
      }
  shares_ = std::make_unique<Share[]>(static_cast<size_t>(count.threads));
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

void ThreadPool::drain(int worker) {
  const int all = width();
  for (int i = 0; i < all; ++i) {
    const int owner = (worker + i) % all;
    for (uint32_t task; shares_[static_cast<size_t>(owner)].take(i == 0, task);)
      work_(context_, static_cast<int>(task), worker);
  }
}

void ThreadPool::worker_loop(int worker) {
  const ScopedFlushDenormals flush(flush_denormals_);
  uint32_t seen = 0;
  Share& own = shares_[static_cast<size_t>(worker)];
  Seat& seat = own.seat;
  seat.sit_down(core_of_);
  while (true) {
    const auto changed = [before = seen](uint32_t epoch) { return epoch != before; };
    if (!spin_until(epoch_, seen, spin_seconds_, changed)) sleep_until(epoch_, seen, changed);
    if (stopping_.load(std::memory_order_relaxed)) return;
    seat.rest();
    seat.leave(caller_cpu_.load(std::memory_order_relaxed));
    // A worker that comes late finds the gate closed, or enters a newer job: both are fine, it never sees a finished one.
    if (gate_.fetch_add(1, std::memory_order_acquire) & kOpen) {
      own.inside.store(true, std::memory_order_relaxed);
      drain(worker);
      own.inside.store(false, std::memory_order_relaxed);
    }
    const uint32_t before = gate_.fetch_sub(1);  // not weaker: notifying must not overtake it
    if (before == 1) gate_.notify_one();         // the last one out of a closed gate: its owner may be asleep in retire()
  }
}

bool ThreadPool::try_publish(uint32_t first, uint32_t tasks, Work work, void* context) {
  if (published_.load(std::memory_order_relaxed) || published_.exchange(true, std::memory_order_acquire)) return false;
  work_ = work;
  context_ = context;
  // Workers leave a caller's CPU by themselves, but one that sleeps would be woken there and wait for its turn of milliseconds.
  if (const int cpu = current_cpu(); cpu != caller_cpu_.load(std::memory_order_relaxed)) {
    caller_cpu_.store(cpu, std::memory_order_relaxed);
    for (size_t i = 1; i <= workers_.size(); ++i) shares_[i].seat.leave(cpu);
  }
  const uint64_t count = tasks - first, all = workers_.size() + 1;
  for (uint64_t i = 0; i < all; ++i)
    shares_[i].set(static_cast<uint32_t>(first + (i * count + all - 1) / all),
                   static_cast<uint32_t>(first + ((i + 1) * count + all - 1) / all));
  gate_.fetch_or(kOpen, std::memory_order_release);
  epoch_.fetch_add(1);
  const auto helpers = std::min<size_t>(count - 1, workers_.size());
  if (helpers < workers_.size() / 2) {
    for (size_t i = 0; i < helpers; ++i) epoch_.notify_one();
  } else {
    epoch_.notify_all();
  }
  return true;
}

// Closes the gate and waits for those inside: after it nobody touches the job. A worker that lost its CPU to another process
// amid a task may wait for it for milliseconds: it gets the CPU of its caller, who has nothing else to do.
void ThreadPool::retire() {
  gate_.fetch_and(~kOpen, std::memory_order_relaxed);
  const auto empty = [](uint32_t gate) { return gate == 0; };
  const auto inside = [&](auto visit) {
    for (size_t i = 1; i <= workers_.size(); ++i)
      if (shares_[i].inside.load(std::memory_order_relaxed)) visit(shares_[i]);
  };
  uint32_t gate = 0;
  bool done = spin_until(gate_, gate, spin_seconds_ / 2, empty), all_run = true;
  for (int look = 0; look < kLooks && !done && all_run; ++look) {
    inside([](Share& share) { share.ran = share.seat.ran(); });
    done = spin_until(gate_, gate, spin_seconds_ / 2, empty);
    if (done) break;
    const int cpu = current_cpu();
    inside([&](Share& share) {
      if (share.seat.ran() != share.ran) return;
      share.seat.come(cpu);
      all_run = false;
    });
  }
  if (!done) sleep_until(gate_, gate, empty);
  published_.store(false, std::memory_order_release);
}

void ThreadPool::run(int tasks, Work work, void* context) {
  if (tasks <= 0) return;
  const ScopedFlushDenormals flush(flush_denormals_);
  // Until the workers are had, the caller takes tasks alone; with one left there is nothing to share.
  for (int task = 0; task < tasks; ++task) {
    if (!workers_.empty() && task + 1 < tasks &&
        try_publish(static_cast<uint32_t>(task), static_cast<uint32_t>(tasks), work, context)) {
      drain(0);
      retire();
      return;
    }
    work(context, task, 0);
  }
}

}  // namespace sparkle
