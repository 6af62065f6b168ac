// Describes the CPU this process runs on: what it is called, its caches, its math units and how many cores it may use. Rates
// stay unknown here; backends/cpu/roofs/roofs.h measures them.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"

namespace sparkle {

struct ProbeOptions {
  int threads = 0;        // overrides the number of cores; 0: what affinity and cgroup allow
  std::string root = {};  // prepended to /proc and /sys, for tests
};

Device probe_cpu(const ProbeOptions& options = {});

// The parts, one file each.

// Name, vendor, architecture ("zen4", "neoverse-v1"; the instruction set's name when unknown), nominal clock if told.
void describe_cpu(Device& device, const std::string& root);
// "0xa101148"; empty where nothing tells. It decides what some instructions cost.
std::string cpu_microcode(const std::string& root = {});
// What microarchitecture a family and model (x86) or implementer and part (Arm) mean; empty when unknown.
// Virtual machines make models up: a model that cannot have the features is named by the features.
struct X86Features {
  bool amx = false, avx512_fp16 = false;
};
std::string_view x86_architecture(std::string_view vendor, int family, int model, int stepping, X86Features features = {});
std::string_view arm_architecture(int implementer, int part);

// Units whose instructions the CPU has and the operating system saves, fastest vector unit first.
std::vector<MathUnit> cpu_units();

// Caches of data, innermost first, then DRAM. Hypervisors leave levels out or make sizes up: only levels that grow outwards
// are kept.
std::vector<MemoryLevel> cpu_memory(const std::string& root);

}  // namespace sparkle
