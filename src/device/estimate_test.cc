// Estimated rates are complete, in the order that hardware has, and touch nothing that is known.
#include "device/estimate.h"

#include <gtest/gtest.h>

#include "device/device_json.h"
#include "device/probe_cpu.h"

namespace sparkle {
namespace {

TEST(EstimateRates, FillsWhatAProbeLeavesOpen) {
  for (int threads : {1, 2, 64}) {
    Device device = probe_cpu({.threads = threads});
    estimate_rates(device);
    EXPECT_FALSE(device.calibrated);
    EXPECT_GT(device.clock_hz, 0);
    EXPECT_GT(device.launch_seconds, 0);
    double inner = 1e18, inner_total = 1e18;
    for (const MemoryLevel& level : device.memory) {
      EXPECT_GT(level.bytes_per_second, 0) << level.name;
      EXPECT_LE(level.bytes_per_second, inner) << level.name;
      EXPECT_GE(level.total_bytes_per_second, level.bytes_per_second) << level.name;
      EXPECT_LE(level.total_bytes_per_second, inner_total) << level.name;
      inner = level.bytes_per_second, inner_total = level.total_bytes_per_second;
    }
    for (const MathUnit& unit : device.units) {
      const bool fp32 = unit.kind == UnitKind::vector_fma && unit.input == DType::f32;
      const bool dots = unit.kind == UnitKind::dot_product && unit.accumulator == DType::i32;
      const bool tiles = unit.name.starts_with("amx-");
      EXPECT_EQ(unit.flops_per_second > 0, fp32 || dots || tiles) << unit.name;
      EXPECT_EQ(unit.total_flops_per_second, unit.flops_per_second * threads) << unit.name;
    }
  }
}

// The rates that Intel gives for its tiles: 2048 operations on bytes a cycle, half as many on bf16.
TEST(EstimateRates, TilesTakeACycleForARow) {
  Device device;
  device.clock_hz = 2e9;
  MathUnit tiles;
  tiles.name = "amx-int8", tiles.kind = UnitKind::matrix, tiles.m = tiles.n = 16, tiles.k = 64;
  device.units.push_back(tiles);
  tiles.name = "amx-bf16", tiles.k = 32;
  device.units.push_back(tiles);
  estimate_rates(device);
  EXPECT_EQ(device.units[0].flops_per_second, 2048 * 2e9);
  EXPECT_EQ(device.units[1].flops_per_second, 1024 * 2e9);
}

TEST(EstimateRates, SurvivesAProbeThatKnowsNothing) {
  Device device;
  device.memory.push_back({});
  device.units.push_back({});
  estimate_rates(device);
  EXPECT_GT(device.clock_hz, 0);
  EXPECT_GT(device.memory[0].bytes_per_second, 0);
  EXPECT_GT(device.units[0].flops_per_second, 0);
}

TEST(EstimateRates, KeepsWhatIsKnown) {
  for (const char* name : {"epyc-zen4", "ryzen-zen3-laptop"}) {
    const auto described = load_device(std::string(SPARKLE_SOURCE_DIR "/devices/") + name + ".json");
    ASSERT_TRUE(described.ok());
    Device device = *described;
    estimate_rates(device);
    EXPECT_EQ(device, *described);
  }
  const auto gpu = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(gpu.ok());
  Device device = *gpu;
  device.memory[0].bytes_per_second = device.clock_hz = 0;
  const Device before = device;
  estimate_rates(device);
  EXPECT_EQ(device, before);
}

}  // namespace
}  // namespace sparkle
