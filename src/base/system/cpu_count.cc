#include "base/system/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace sparkle {

namespace {

// CPUs of the affinity mask; empty when the kernel does not tell.
std::vector<int> affinity_cpus() {
  std::vector<int> cpus;
  // The mask must be as long as the kernel's own, which may exceed the 1024 bits of cpu_set_t.
  for (int bits = 1024; bits <= 1 << 18; bits *= 4) {
    cpu_set_t* set = CPU_ALLOC(bits);
    if (set == nullptr) return cpus;
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; known && cpu < bits; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (known) return cpus;
  }
  return cpus;
}

std::optional<double> read_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  double microseconds = 0;
  if (!(std::istringstream(quota) >> microseconds) || microseconds <= 0) return std::nullopt;
  return microseconds / period;
}

std::optional<double> read_v1(const std::string& folder) {
  double quota = 0, period = 0;
  if (!(std::ifstream(folder + "/cpu.cfs_quota_us") >> quota)) return std::nullopt;
  if (!(std::ifstream(folder + "/cpu.cfs_period_us") >> period)) return std::nullopt;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// The tightest limit of `path` and its ancestors below `mount`. Inside a container the path may be the host's; then only
// the mount itself is found, which is the container's own group.
template <class Read>
void tighten(std::optional<double>& quota, const std::string& mount, std::string path, Read read) {
  while (true) {
    if (const auto limit = read(mount + path)) quota = quota ? std::min(*quota, *limit) : *limit;
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return;
    path.resize(slash);
  }
}

}  // namespace

std::optional<double> cgroup_cpu_quota(const std::string& root) {
  std::optional<double> quota;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      tighten(quota, root + "/sys/fs/cgroup", path, read_v2);
      tighten(quota, root + "/sys/fs/cgroup/unified", path, read_v2);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"})
        tighten(quota, root + mount, path, read_v1);
    }
  }
  return quota;
}

ThreadCount usable_threads(int requested) { return usable_threads(requested, affinity_cpus()); }

ThreadCount usable_threads(int requested, const std::vector<int>& cpus, const std::string& root) {
  const int affinity =
      cpus.empty() ? std::max(1, static_cast<int>(std::thread::hardware_concurrency())) : static_cast<int>(cpus.size());
  ThreadCount count;
  count.core_list = cpu_cores(cpus, root);
  const int cores = cpus.empty() ? affinity : static_cast<int>(count.core_list.size());
  const int used = cpus.empty() ? affinity : cores_worth_using(count.core_list);
  const std::optional<double> quota = cgroup_cpu_quota(root);

  count.threads = used;
  // Rounded to nearest: one thread too many is throttled for a part of each period, one too few leaves paid time unused.
  if (quota) count.threads = std::min(count.threads, std::max(1, static_cast<int>(std::lround(std::min(*quota, 1e6)))));
  const int automatic = count.threads;
  if (requested > 0) count.threads = requested;
  count.over_quota = quota && count.threads > *quota;

  char quota_text[32] = "none";
  if (quota) std::snprintf(quota_text, sizeof quota_text, "%.3g", *quota);
  count.note = std::to_string(count.threads) + (count.threads == 1 ? " thread (" : " threads (");
  if (requested > 0) count.note += "requested; " + std::to_string(automatic) + " by default: ";
  count.note += "affinity " + std::to_string(affinity);
  if (cores != affinity) count.note += " on " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
  // A fifth: cores of one kind differ by less in what they may be clocked at.
  const auto slower =
      std::count_if(count.core_list.begin(), count.core_list.end(), [](const CpuCore& c) { return c.speed < 0.8; });
  if (used < cores) {
    count.note += ", " + std::to_string(cores - used) + " slower ones left out";
  } else if (slower > 0) {
    count.note += ", " + std::to_string(slower) + " of them slower";
  }
  count.note += std::string(", cgroup quota ") + quota_text + ")";
  return count;
}

}  // namespace sparkle
