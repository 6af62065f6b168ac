#include "base/system/seats.h"

#if defined(__linux__)
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sparkle {

namespace {

bool same_core(int a, int b, const std::vector<int>& core_of) {
  const auto core = [&](int cpu) {
    return cpu >= 0 && cpu < static_cast<int>(core_of.size()) ? core_of[static_cast<size_t>(cpu)] : -1;
  };
  return a == b || (core(a) >= 0 && core(a) == core(b));
}

}  // namespace

std::vector<int> cpus_beside(int taken, const std::vector<int>& cpus, const std::vector<int>& core_of) {
  std::vector<int> other_cores, other_cpus;
  for (const int cpu : cpus) {
    if (!same_core(cpu, taken, core_of)) other_cores.push_back(cpu);
    if (cpu != taken) other_cpus.push_back(cpu);
  }
  return !other_cores.empty() ? other_cores : !other_cpus.empty() ? other_cpus : cpus;
}

#if defined(__linux__)

int current_cpu() { return sched_getcpu(); }

// Machines with more CPUs than a set of this size holds refuse to tell; their workers stay where the system puts them.
void Seat::sit_down(const std::vector<int>& core_of) {
  core_of_ = core_of;
  CPU_ZERO(&cpus_);
  if (sched_getaffinity(0, sizeof cpus_, &cpus_) != 0 || CPU_COUNT(&cpus_) < 2) return;
  given_ = cpus_;
  if (pthread_getcpuclockid(pthread_self(), &clock_) != 0) return;
  thread_ = static_cast<pid_t>(syscall(SYS_gettid));
  rest();
  movable_.store(true, std::memory_order_release);
}

bool Seat::hear() {
  cpu_set_t current;
  CPU_ZERO(&current);
  if (sched_getaffinity(thread_, sizeof current, &current) != 0) return false;
  if (!CPU_EQUAL(&current, &given_)) cpus_ = current;
  return true;
}

void Seat::leave(int taken) {
  if (taken < 0 || taken >= CPU_SETSIZE || !movable_.load(std::memory_order_acquire)) return;
  if (!same_core(cpu_.load(std::memory_order_relaxed), taken, core_of_)) return;
  const std::unique_lock lock(moving_, std::try_to_lock);
  const auto now = std::chrono::steady_clock::now();
  if (!lock || now - moved_ < std::chrono::milliseconds(1)) return;
  moved_ = now;
  if (!hear()) return;
  std::vector<int> all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cpus_)) all.push_back(cpu);
  CPU_ZERO(&given_);
  for (const int cpu : cpus_beside(taken, all, core_of_)) CPU_SET(cpu, &given_);
  (void)sched_setaffinity(thread_, sizeof given_, &given_);  // one that is refused leaves the worker where it is
}

int64_t Seat::ran() const {
  timespec time{};
  if (!movable_.load(std::memory_order_acquire) || clock_gettime(clock_, &time) != 0) return -1;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void Seat::come(int free) {
  if (free < 0 || free >= CPU_SETSIZE || !movable_.load(std::memory_order_acquire)) return;
  const std::unique_lock lock(moving_, std::try_to_lock);
  if (!lock || !hear() || !CPU_ISSET(free, &cpus_)) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(free, &one);
  given_ = cpus_;
  (void)sched_setaffinity(thread_, sizeof one, &one);
  (void)sched_setaffinity(thread_, sizeof given_, &given_);
}

#else

int current_cpu() { return -1; }
void Seat::sit_down(const std::vector<int>&) {}
void Seat::leave(int) {}
int64_t Seat::ran() const { return -1; }
void Seat::come(int) {}

#endif

}  // namespace sparkle
