// What Linux tells of a machine's CPUs: which of them are threads of one core, and which cores are slower than others (E cores
// of Intel's, little ones of Arm's).
#pragma once

#include <string>
#include <vector>

namespace sparkle {

struct CpuCore {
  std::vector<int> cpus;  // of those asked for
  double speed = 1;       // of the fastest core's
};

// The cores that `cpus` belong to, fastest first; a CPU whose siblings are not told is a core. `root` is prepended to /sys, for
// tests.
std::vector<CpuCore> cpu_cores(const std::vector<int>& cpus, const std::string& root = {});

// How many of them to use: as many of the fastest as make their number times the speed of the slowest greatest. Tasks alike,
// one for each, then end soonest; what is cut finer is shared as it goes and ends sooner still.
int cores_worth_using(const std::vector<CpuCore>& cores);

// The numbers of a list such as "0-3,8"; those up to where it is none.
std::vector<int> parse_cpu_list(const std::string& list);

}  // namespace sparkle
