// The roof of a plan's step: what it executes without padding, or the bytes that it cannot do without.
#include "measure/roofs/plan_roofs.h"

#include <gtest/gtest.h>

#include "families/common.h"
#include "families/gemm/gemm.h"

namespace sparkle {
namespace {

// 1 Tflop/s, memory of one level at 10 GB/s.
Device machine() {
  Device device;
  device.cores = 1;
  MemoryLevel& level = device.memory.emplace_back();
  level.name = "DRAM", level.bytes = int64_t{1} << 30, level.bytes_per_second = level.total_bytes_per_second = 10e9;
  MathUnit& unit = device.units.emplace_back();
  unit.name = "avx2", unit.kind = UnitKind::vector_fma, unit.n = 8, unit.flops_per_second = 1e12;
  device.launch_seconds = 1;
  return device;
}

PlanStep product(int64_t rows, double nominal, double executed) {
  PlanStep step;
  step.stage.params = GemmParams{};
  step.stage.inputs = {dense_desc(DType::f32, {rows, 8}), dense_desc(DType::f32, {8, 8})};
  step.stage.outputs = {dense_desc(DType::f32, {rows, 8})};
  GemmSchedule schedule;
  schedule.variant = "tile6x4", schedule.unit = "avx2";
  step.schedule = schedule;
  step.footprint.nominal_flops = nominal, step.footprint.executed_flops = executed;
  return step;
}

TEST(PlanRoofs, TheRoofCountsWhatIsExecutedWithoutPadding) {
  EXPECT_NEAR(roof_seconds(product(8, 2e9, 1e9), machine()), 1e-3, 1e-9);  // winograd executes half
  EXPECT_NEAR(roof_seconds(product(8, 2e9, 3e9), machine()), 2e-3, 1e-9);  // a tile's padding is no work
}

TEST(PlanRoofs, TheRoofCountsBytesThatMustMove) {
  const PlanStep step = product(1 << 20, 1e3, 1e3);
  EXPECT_EQ(compulsory_bytes(step), 4.0 * (2 * 8 * (1 << 20) + 64));
  EXPECT_NEAR(roof_seconds(step, machine()), compulsory_bytes(step) / 10e9, 1e-9);
}

}  // namespace
}  // namespace sparkle
