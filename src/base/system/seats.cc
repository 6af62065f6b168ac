#include "base/system/seats.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sparkle {

#if defined(__linux__)

int current_cpu() { return sched_getcpu(); }

// Machines with more CPUs than a set of this size holds refuse to tell; their workers stay where the system puts them.
void Seat::sit_down() {
  CPU_ZERO(&cpus_);
  if (sched_getaffinity(0, sizeof cpus_, &cpus_) != 0 || CPU_COUNT(&cpus_) < 2) return;
  thread_ = static_cast<pid_t>(syscall(SYS_gettid));
  rest();
  movable_.store(true, std::memory_order_release);
}

void Seat::leave(int taken) {
  if (taken < 0 || taken >= CPU_SETSIZE || cpu_.load(std::memory_order_relaxed) != taken) return;
  if (!movable_.load(std::memory_order_acquire)) return;
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now().time_since_epoch().count();
  auto before = moved_.load(std::memory_order_relaxed);
  if (now - before < Clock::duration(std::chrono::milliseconds(1)).count()) return;
  if (!moved_.compare_exchange_strong(before, now, std::memory_order_relaxed)) return;
  cpu_set_t others = cpus_;
  CPU_CLR(taken, &others);
  if (CPU_COUNT(&others) > 0) (void)sched_setaffinity(thread_, sizeof others, &others);
}

#else

int current_cpu() { return -1; }
void Seat::sit_down() {}
void Seat::leave(int) {}

#endif

}  // namespace sparkle
