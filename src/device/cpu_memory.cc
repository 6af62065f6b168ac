// Caches from Linux's sysfs, from cpuid where sysfs tells nothing, and the size of main memory.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "base/system/cpu_cores.h"
#include "device/cpuid.h"
#include "device/probe_cpu.h"

namespace sparkle {

namespace {

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "48K", "2M", "64": a size in bytes; 0 when it is none.
int64_t parse_size(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > int64_t{1} << 40) return 0;
  const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  return suffix.starts_with('K') ? value << 10 : suffix.starts_with('M') ? value << 20 : value;
}

int count_cpus(const std::string& list) { return static_cast<int>(parse_cpu_list(list).size()); }

using Levels = std::map<int, MemoryLevel>;

Levels caches_of_sysfs(const std::string& root) {
  const std::string cpu = root + "/sys/devices/system/cpu/cpu0/";
  const int siblings = std::max(1, count_cpus(read_line(cpu + "topology/thread_siblings_list")));
  Levels levels;
  for (int index = 0; index < 16; ++index) {
    const std::string folder = cpu + "cache/index" + std::to_string(index) + "/";
    const std::string type = read_line(folder + "type");
    const int number = static_cast<int>(parse_size(read_line(folder + "level")));
    if ((type != "Data" && type != "Unified") || number < 1 || number > 9) continue;
    MemoryLevel level;
    level.bytes = parse_size(read_line(folder + "size"));
    level.shared_by = std::max(1, count_cpus(read_line(folder + "shared_cpu_list")) / siblings);
    if (level.bytes > 0) levels[number] = level;
  }
  return levels;
}

Levels caches_of_cpuid() {
  Levels levels;
#if defined(__x86_64__)
  // Intel's leaf 4 and AMD's leaf 0x8000001d have one format.
  for (uint32_t leaf : {4u, 0x8000001du}) {
    for (uint32_t index = 0; index < 16 && levels.size() < 4; ++index) {
      const CpuidLeaf r = cpuid(leaf, index);
      const uint32_t type = r.eax & 31;
      if (type == 0) break;
      if (type != 1 && type != 3) continue;  // data, unified
      MemoryLevel level;
      const int64_t line = (r.ebx & 0xfff) + 1;
      level.bytes = line * (((r.ebx >> 12) & 0x3ff) + 1) * ((r.ebx >> 22) + 1) * (int64_t{r.ecx} + 1);
      level.shared_by = static_cast<int>((r.eax >> 14) & 0xfff) + 1;
      levels[static_cast<int>((r.eax >> 5) & 7)] = level;
    }
    if (!levels.empty()) break;
  }
#endif
  return levels;
}

}  // namespace

std::vector<MemoryLevel> cpu_memory(const std::string& root) {
  Levels levels = caches_of_sysfs(root);
  if (levels.empty()) levels = caches_of_cpuid();
  std::vector<MemoryLevel> memory;
  for (auto& [number, level] : levels) {
    if (!memory.empty() && level.bytes <= memory.back().bytes) continue;
    level.name = "L" + std::to_string(number);
    memory.push_back(level);
  }
  MemoryLevel dram;
  dram.name = "DRAM";
  dram.shared_by = memory.empty() ? 1 : memory.back().shared_by;
  std::ifstream info(root + "/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  if (info >> key >> kilobytes && key == "MemTotal:" && kilobytes > 0) dram.bytes = kilobytes * 1024;
  std::ifstream online(root + "/sys/devices/system/cpu/online");
  std::string cpus;
  if (std::getline(online, cpus)) dram.shared_by = std::max(dram.shared_by, count_cpus(cpus));
  memory.push_back(dram);
  return memory;
}

}  // namespace sparkle
