#include "base/system/cpu_cores.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <set>

namespace sparkle {

namespace {

// An E core multiplies half as much in a cycle: two pipes of 128 bits beside two of 256.
constexpr double kAtomPerCycle = 0.5;
constexpr int kMostCpus = 1 << 18;

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double read_number(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value && value > 0 ? value : 0;
}

// Of each CPU in any unit; all alike where some are not told.
std::vector<double> speeds_of(const std::vector<int>& cpus, const std::string& root) {
  const auto read = [&](const char* name) {
    std::vector<double> speeds;
    for (const int cpu : cpus)
      speeds.push_back(read_number(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + name));
    if (std::find(speeds.begin(), speeds.end(), 0.0) != speeds.end()) speeds.assign(cpus.size(), 1.0);
    return speeds;
  };
  // Where capacities are told and differ they hold all: the clock, and what a core does in a cycle.
  std::vector<double> speeds = read("cpu_capacity");
  if (std::set<double>(speeds.begin(), speeds.end()).size() > 1) return speeds;
  speeds = read("cpufreq/cpuinfo_max_freq");
  const std::vector<int> atoms = parse_cpu_list(read_line(root + "/sys/devices/cpu_atom/cpus"));
  for (size_t i = 0; i < cpus.size(); ++i)
    if (std::find(atoms.begin(), atoms.end(), cpus[i]) != atoms.end()) speeds[i] *= kAtomPerCycle;
  return speeds;
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& list) {
  std::vector<int> cpus;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) break;
    int last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc() || first < 0 || last < first || last >= kMostCpus) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = parsed.ptr + 1;  // over the comma
  }
  return cpus;
}

std::vector<CpuCore> cpu_cores(const std::vector<int>& cpus, const std::string& root) {
  const std::vector<double> speeds = speeds_of(cpus, root);
  const double fastest = cpus.empty() ? 1 : *std::max_element(speeds.begin(), speeds.end());
  std::map<std::string, CpuCore> by_siblings;
  for (size_t i = 0; i < cpus.size(); ++i) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpus[i]) + "/topology/";
    std::string siblings = read_line(folder + "core_cpus_list");
    if (siblings.empty()) siblings = read_line(folder + "thread_siblings_list");
    CpuCore& core = by_siblings[siblings.empty() ? std::to_string(cpus[i]) : siblings];
    core.cpus.push_back(cpus[i]);
    core.speed = speeds[i] / fastest;
  }
  std::vector<CpuCore> cores;
  for (auto& [siblings, core] : by_siblings) cores.push_back(std::move(core));
  std::sort(cores.begin(), cores.end(), [](const CpuCore& a, const CpuCore& b) {
    return a.speed != b.speed ? a.speed > b.speed : a.cpus.front() < b.cpus.front();
  });
  return cores;
}

int cores_worth_using(const std::vector<CpuCore>& cores) {
  size_t best = 0;
  double most = 0;
  for (size_t n = 1; n <= cores.size(); ++n)
    if (const double together = static_cast<double>(n) * cores[n - 1].speed; together >= most) best = n, most = together;
  return static_cast<int>(best);
}

}  // namespace sparkle
