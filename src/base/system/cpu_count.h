// How many threads this process should use: the cores its affinity mask allows, at most its cgroup's CPU quota.
// Hyperthreads of one core share its FMA ports and its caches, so a core counts once.
#pragma once

#include <optional>
#include <string>

namespace sparkle {

struct ThreadCount {
  int threads = 1;
  std::string note;  // "2 threads (affinity 2, cgroup quota none)"
};

// The count for this process; `requested` > 0 overrides it and the note says so.
ThreadCount usable_threads(int requested = 0);

// CPUs per second that the cgroup may use (cgroup v2 cpu.max, v1 cpu.cfs_quota_us), the tightest of its ancestors; nothing
// when unlimited. `root` is prepended to /proc and /sys, for tests.
std::optional<double> cgroup_cpu_quota(const std::string& root = {});

}  // namespace sparkle
