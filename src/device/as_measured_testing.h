// A GPU of a data sheet as a driver and Sparkle's probes would describe it: for tests of plans that a real device gets.
#pragma once

#include "device/memory_curve.h"

namespace sparkle {
namespace as_measured_detail {

inline MemoryLevel level_of(const MemoryLevel& from, double share) {
  MemoryLevel level;
  level.name = from.name, level.bytes = from.bytes, level.filled_by_hand = from.filled_by_hand;
  level.bytes_per_second = share * from.bytes_per_second;
  level.total_bytes_per_second = share * from.total_bytes_per_second;
  return level;
}

inline bool is_listed(const MathUnit& unit) {
  if (unit.kind == UnitKind::matrix) return unit.input == DType::f16 && unit.accumulator == DType::f32;
  return true;
}

}  // namespace as_measured_detail

// Keeps only the fields that a GPU's description and its probes write; rates are `share` of those on the data sheet, launches
// take as much longer.
inline Device as_measured(const Device& from, double share = 0.85) {
  using as_measured_detail::is_listed, as_measured_detail::level_of;
  Device d;
  d.name = from.name, d.kind = from.kind, d.vendor = from.vendor, d.architecture = from.architecture;
  d.driver = from.driver, d.cores = from.cores;
  d.launch_seconds = from.launch_seconds / share;
  d.calibrated = true;
  d.limits = from.limits;
  std::vector<CurveLevel> caches;
  std::vector<double> rates_of_one_core;
  for (const MemoryLevel& level : from.memory) {
    if (level.filled_by_hand) {
      d.memory.push_back(level_of(level, share));
      d.memory.back().bytes = from.limits.shared_bytes_per_group;
    } else if (level.name != "L1" && level.name != "DRAM") {
      // The largest working set of the probe that it holds.
      const auto sets = working_sets(1 << 19, static_cast<double>(level.bytes));
      caches.push_back({sets.empty() ? 0 : sets.back(), share * level.total_bytes_per_second});
      rates_of_one_core.push_back(share * level.bytes_per_second);
    }
  }
  if (const MemoryLevel* dram = from.level("DRAM")) {
    d.memory.push_back(level_of(*dram, share));
    d.memory.back().shared_by = d.cores;
    d.memory.back().copy_bytes_per_second = d.memory.back().total_bytes_per_second;
  }
  caches.push_back({0, 0});
  put_caches(d, caches, rates_of_one_core);
  for (const MathUnit& unit : from.units) {
    if (!is_listed(unit)) continue;
    d.units.push_back(unit);
    MathUnit& u = d.units.back();
    u.registers = 0;
    // What bytes and doubles are computed on is not measured.
    const double rate = u.name.starts_with("alu-") ? 0 : share;
    u.flops_per_second *= rate, u.total_flops_per_second *= rate;
  }
  return d;
}

}  // namespace sparkle
