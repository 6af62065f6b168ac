#include "device/estimate.h"

#include <algorithm>

namespace sparkle {
namespace {

constexpr double kUnknownClock = 2.5e9;
// Bytes per cycle of one core reading its caches: probes of Zen 4 gave 54 for L1, 31 for L2 and 23 for an L3 near its cores,
// of Emerald Rapids 66-96, 41-49 and 7-11 over its mesh. DRAM is no matter of cycles: 14-29 GB/s for one core.
constexpr double kNearBytesPerCycle[] = {54, 31, 22}, kFarBytesPerCycle[] = {80, 45, 10};
constexpr double kDramBytesPerSecond = 18e9;
constexpr int kCoresThatFillDram = 8;
// Two FMA pipes on every core with vector units supported here, which multiply integers too; AVX-512 on AMD before Zen 5 pairs
// two of 256 bits.
constexpr double kPipes = 2;
// Handing a step to the pool and waiting for it; alone it is a function call.
constexpr double kLaunchAlone = 5e-8, kLaunchTogether = 3e-7;

double flops_of(const MathUnit& unit, const Device& device, double clock) {
  // A row of the left tile a cycle: 16 for a product of tiles (Intel's Optimization Reference Manual).
  if (unit.kind == UnitKind::matrix) return 2.0 * unit.n * unit.k * clock;
  double lanes = unit.n;
  if (unit.name.starts_with("avx512") && device.vendor == "AMD" && device.architecture != "zen5") lanes /= 2;
  // Neoverse V1 has four pipes of 128 bits, which SVE takes in pairs (Arm's Software Optimization Guide).
  if (unit.name.starts_with("neon") && device.architecture == "neoverse-v1") lanes *= 2;
  // Pairs of 16-bit products are added up by an instruction of their own: four of both on three ports.
  const double share = unit.input == DType::i16 ? 0.75 : 1;
  return 2 * kPipes * share * lanes * unit.k * clock;
}

double cache_rate(size_t level, const Device& device, double clock) {
  return clock * (device.vendor == "Intel" ? kFarBytesPerCycle : kNearBytesPerCycle)[level < 2 ? level : 2];
}

void fill(double& rate, double estimate) {
  if (rate <= 0) rate = estimate;
}

}  // namespace

void estimate_rates(Device& device) {
  if (device.has_workgroups()) return;
  const double clock = device.clock_hz > 0 ? device.clock_hz : kUnknownClock;
  const int cores = std::max(1, device.cores);
  fill(device.clock_hz, clock);
  fill(device.launch_seconds, cores > 1 ? kLaunchTogether : kLaunchAlone);
  for (MathUnit& unit : device.units) {
    const bool floats = unit.kind == UnitKind::vector_fma && unit.input == DType::f32;
    const bool integers = unit.kind == UnitKind::dot_product && unit.accumulator == DType::i32;
    const bool tiles = unit.kind == UnitKind::matrix && unit.name.starts_with("amx-");
    if (!floats && !integers && !tiles) continue;
    fill(unit.flops_per_second, flops_of(unit, device, clock));
    fill(unit.total_flops_per_second, unit.flops_per_second * cores);
  }
  for (size_t i = 0; i < device.memory.size(); ++i) {
    MemoryLevel& level = device.memory[i];
    const bool dram = i + 1 == device.memory.size();
    const double dram_rate =
        i > 0 ? std::min(kDramBytesPerSecond, 0.8 * device.memory[i - 1].bytes_per_second) : kDramBytesPerSecond;
    fill(level.bytes_per_second, dram ? dram_rate : cache_rate(i, device, clock));
    fill(level.total_bytes_per_second, level.bytes_per_second * (dram ? std::min(cores, kCoresThatFillDram) : cores));
  }
}

}  // namespace sparkle
