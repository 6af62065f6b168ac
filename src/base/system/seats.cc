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
  given_ = cpus_;
  thread_ = static_cast<pid_t>(syscall(SYS_gettid));
  rest();
  movable_.store(true, std::memory_order_release);
}

void Seat::leave(int taken) {
  if (taken < 0 || taken >= CPU_SETSIZE || cpu_.load(std::memory_order_relaxed) != taken) return;
  if (!movable_.load(std::memory_order_acquire)) return;
  const std::unique_lock lock(moving_, std::try_to_lock);
  const auto now = std::chrono::steady_clock::now();
  if (!lock || now - moved_ < std::chrono::milliseconds(1)) return;
  moved_ = now;
  cpu_set_t current;
  CPU_ZERO(&current);
  if (sched_getaffinity(thread_, sizeof current, &current) != 0) return;
  if (!CPU_EQUAL(&current, &given_)) cpus_ = current;  // somebody else's word
  given_ = cpus_;
  CPU_CLR(taken, &given_);
  if (CPU_COUNT(&given_) == 0) given_ = cpus_;
  (void)sched_setaffinity(thread_, sizeof given_, &given_);  // one that is refused leaves the worker where it is
}

#else

int current_cpu() { return -1; }
void Seat::sit_down() {}
void Seat::leave(int) {}

#endif

}  // namespace sparkle
