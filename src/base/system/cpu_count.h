// How many threads this process should use: the cores its affinity mask allows, at most its cgroup's CPU quota.
// Hyperthreads of one core share its FMA ports and its caches, so a core counts once; slow cores beside fast ones count where
// that ends work sooner (cpu_cores.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/system/cpu_cores.h"

namespace sparkle {

struct ThreadCount {
  int threads = 1;
  std::string note;                // "2 threads (affinity 2, cgroup quota none)"
  bool over_quota = false;         // all at once they use the quota up before its period ends
  std::vector<CpuCore> core_list;  // that the affinity mask allows
};

// The count for this process; `requested` > 0 overrides it and the note says so.
ThreadCount usable_threads(int requested = 0);
// The same for these CPUs, by what lies below `root`, for tests.
ThreadCount usable_threads(int requested, const std::vector<int>& cpus, const std::string& root = {});

// CPUs per second that the cgroup may use (cgroup v2 cpu.max, v1 cpu.cfs_quota_us), the tightest of its ancestors; nothing
// when unlimited. `root` is prepended to /proc and /sys, for tests.
std::optional<double> cgroup_cpu_quota(const std::string& root = {});

}  // namespace sparkle
