// What a level of memory costs that a device's description says nothing of.
#include "plan/choose/cost.h"

#include <gtest/gtest.h>

#include "families/loops/tile_schedule.h"

namespace sparkle {
namespace {

Device device_of(std::vector<double> rates) {
  Device device;
  device.kind = DeviceKind::vulkan, device.limits.max_threads_per_group = 1024;
  device.cores = 100;
  device.units.push_back({});
  device.units[0].name = "fma-f32", device.units[0].flops_per_second = 1e11, device.units[0].total_flops_per_second = 1e13;
  for (const double rate : rates) {
    MemoryLevel level;
    level.name = "level" + std::to_string(device.memory.size());
    level.bytes = 1 << (16 + 4 * device.memory.size());
    level.bytes_per_second = rate / device.cores, level.total_bytes_per_second = rate;
    device.memory.push_back(level);
  }
  return device;
}

Cost cost_on(const Device& device, std::vector<double> exposed = {}) {
  TileSchedule schedule;
  schedule.unit = "fma-f32";
  Footprint f;
  f.executed_flops = 1e9, f.bytes = {4e9, 2e9, 1e9}, f.exposed = std::move(exposed), f.parallel_items = 1000;
  return cost_of(f, schedule, device);
}

TEST(Cost, AnUnknownLevelCostsNoMoreThanItsNeighbours) {
  const double known = cost_on(device_of({1e13, 5e12, 1e12})).seconds;
  for (const std::vector<double>& rates :
       {std::vector<double>{0, 5e12, 1e12}, {1e13, 0, 1e12}, {0, 0, 1e12}, {1e13, 5e12, 0}}) {
    EXPECT_LE(cost_on(device_of(rates)).seconds, known);
    EXPECT_LE(cost_on(device_of(rates), {0, 1e8, 1e8}).seconds, cost_on(device_of({1e13, 5e12, 1e12}), {0, 1e8, 1e8}).seconds);
  }
  EXPECT_EQ(cost_on(device_of({0, 0, 1e12})).bound, "level2");
  EXPECT_EQ(cost_on(device_of({0, 0, 1e12})).seconds, cost_on(device_of({1e15, 1e15, 1e12})).seconds);
}

TEST(Cost, ARateOfAllCoresAloneIsARate) {
  Device device = device_of({1e13, 5e12, 1e12});
  const double both = cost_on(device).seconds;
  for (MemoryLevel& level : device.memory) level.bytes_per_second = 0;
  EXPECT_EQ(cost_on(device).seconds, both);
}

TEST(Cost, WithoutAnyRateNoTrafficLooksFast) { EXPECT_GT(cost_on(device_of({0, 0, 0})).seconds, 0.1); }

// Each field of a footprint costs something, but for two: nominal flops are what roofs and reports count products by, scratch
// memory has its place in the plan's arena.
TEST(Cost, EachFieldOfAFootprintCounts) {
  Device device = device_of({1e13, 5e12, 1e12});
  device.launch_seconds = 1e-6;
  TileSchedule schedule;
  schedule.unit = "fma-f32";
  Footprint base;
  base.executed_flops = 1e10, base.bytes = {4e9, 2e9, 1e9}, base.exposed = {0, 0, 1e8}, base.parallel_items = 1000;
  const auto seconds = [&](auto change) {
    Footprint f = base;
    change(f);
    auto& [nominal, executed, functions, bytes, exposed, port, units, calls, launches, workspace] = f;  // all of them
    static_assert(std::is_same_v<decltype(nominal), double> && std::is_same_v<decltype(workspace), int64_t>);
    return cost_of(f, schedule, device).seconds;
  };
  const double before = seconds([](Footprint&) {});
  EXPECT_EQ(seconds([](Footprint& f) { f.nominal_flops = 1e12; }), before);
  EXPECT_EQ(seconds([](Footprint& f) { f.workspace_bytes = 1 << 20; }), before);
  EXPECT_GT(seconds([](Footprint& f) { f.executed_flops *= 2; }), before);
  EXPECT_GT(seconds([](Footprint& f) { f.function_flops = 1e11; }), before);
  for (size_t level = 0; level < base.bytes.size(); ++level)
    EXPECT_GT(seconds([&](Footprint& f) { f.bytes[level] *= 10; }), before) << level;
  EXPECT_GT(seconds([](Footprint& f) { f.exposed[2] *= 2; }), before);
  EXPECT_GT(seconds([](Footprint& f) { f.port_bytes = 1e11; }), before);
  EXPECT_GT(seconds([](Footprint& f) { f.parallel_items = 10; }), before);
  EXPECT_GT(seconds([](Footprint& f) { f.calls = 1e9; }), before);
  EXPECT_GT(seconds([](Footprint& f) { f.launches += 1; }), before);
}

// A kernel's pace lengthens arithmetic and calls, not traffic.
TEST(Cost, PaceOfAKernel) {
  Device device = device_of({1e13, 5e12, 1e12});
  device.paces = {{"gemm tile6x2", "fma-f32", 1.25}};
  EXPECT_EQ(device.pace("gemm", "tile6x2", "fma-f32"), 1.25);
  EXPECT_EQ(device.pace("gemm", "tile6x4", "fma-f32"), 1);
  EXPECT_EQ(device.pace("gemm", "tile6x2", "avx2"), 1);
  TileSchedule schedule;
  schedule.unit = "fma-f32";
  Footprint f;
  f.executed_flops = 1e12, f.bytes = {1e6, 1e6, 1e6}, f.parallel_items = 1000;
  EXPECT_NEAR(cost_of(f, schedule, device, 1.25).seconds / cost_of(f, schedule, device).seconds, 1.25, 1e-3);
  f.executed_flops = 1, f.bytes = {1e12, 1e12, 1e12};
  EXPECT_EQ(cost_of(f, schedule, device, 1.25).seconds, cost_of(f, schedule, device).seconds);
}

}  // namespace
}  // namespace sparkle
