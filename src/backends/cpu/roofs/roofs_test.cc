// Measured roofs hold together: within physical sense, all cores not slower than one, kept and found again.
#include "backends/cpu/roofs/roofs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "backends/cpu/roofs/roof_kernels.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"

namespace sparkle::cpu {
namespace {

TEST(Roofs, EveryUnitWithKernelsIsMeasured) {
  Device device = probe_cpu();
  ThreadPool pool;
  const Status status = measure_roofs(device, pool, 0.1);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(device.calibrated);
  EXPECT_GT(device.clock_hz, 1e7);  // an emulator may be slow
  EXPECT_LT(device.clock_hz, 1e10);
  EXPECT_GT(device.launch_seconds, 0);
  EXPECT_LT(device.launch_seconds, 0.1);
  for (const MathUnit& unit : device.units) {
    if (roof_kernels(unit.name).products == nullptr) {
      EXPECT_EQ(unit.flops_per_second, 0) << unit.name;
      continue;
    }
    EXPECT_GT(unit.flops_per_second, 1e6) << unit.name;
    EXPECT_LT(unit.flops_per_second, unit.kind == UnitKind::matrix ? 1e14 : 1e13) << unit.name;
    EXPECT_GT(unit.total_flops_per_second, 0.3 * unit.flops_per_second) << unit.name;
  }
  EXPECT_GT(device.memory.back().bytes_per_second, 0);
  for (const MemoryLevel& level : device.memory) {
    EXPECT_GE(level.bytes_per_second, 0) << level.name;
    EXPECT_GE(level.total_bytes_per_second, 0) << level.name;
  }
}

// A kernel of 8-bit integers is planned by, and compared with, the peak of its own unit: no rate that floats have.
TEST(Roofs, IntegerDotProductsHaveTheirOwnPeak) {
  Device device = probe_cpu();
  InlineExecutor executor;
  ASSERT_TRUE(measure_roofs(device, executor, 0.2).ok());
  for (const MathUnit& unit : device.units) {
    if (unit.kind != UnitKind::dot_product || !integer_products(unit.name)) continue;
    EXPECT_GT(unit.flops_per_second, 0) << unit.name;
    EXPECT_GT(probe_peak(unit.name).flops_per_second, 0) << unit.name;
    float sink = 0;
    EXPECT_GE(integer_products(unit.name)(1e5, &sink), 1e5) << unit.name;
    // No more products a cycle than four pipes as wide as the unit give.
    if (device.clock_hz > 0) {
      EXPECT_LT(unit.flops_per_second, 2.0 * 4 * unit.n * unit.k * device.clock_hz * 1.5) << unit.name;
    }
  }
#if defined(__x86_64__)
  for (const char* name : {"avx512-vnni", "avx-vnni", "avx2-int16"})
    if (device.unit(name)) {
      EXPECT_NE(integer_products(name), nullptr) << name;
    }
#endif
}

TEST(Roofs, TilesHaveAPeakNearTheirNominalOne) {
  Device device = probe_cpu();
  if (!device.unit("amx-int8")) GTEST_SKIP() << "this machine has no AMX, or the system does not let its tiles be used";
  InlineExecutor executor;
  ASSERT_TRUE(measure_roofs(device, executor, 0.2).ok());
  for (const char* name : {"amx-int8", "amx-bf16"})
    if (const MathUnit* unit = device.unit(name)) {
      const double nominal = 2.0 * unit->n * unit->k * device.clock_hz;  // a row of the left tile a cycle
      EXPECT_GT(unit->flops_per_second, 0.1 * nominal) << name;
      EXPECT_LT(unit->flops_per_second, 2.5 * nominal) << name;
    }
}

TEST(Roofs, PeakProbeIsShort) {
  const Device device = probe_cpu();
  ASSERT_FALSE(device.units.empty());
  const std::string unit = device.units.front().name;
  EXPECT_GT(probe_peak(unit).flops_per_second, 0);
  ThreadPool pool(2);
  const UnitPeak both = probe_peak(unit, pool);
  EXPECT_GT(both.flops_per_second, both.core_flops_per_second);
  EXPECT_EQ(probe_peak("no-such-unit").flops_per_second, 0);
}

TEST(Roofs, KernelsReadAndCopy) {
  const Device device = probe_cpu();
  for (const MathUnit& unit : device.units) {
    const RoofKernels kernels = roof_kernels(unit.name);
    if (kernels.copy == nullptr) continue;
    constexpr int64_t count = 3 * kRoofStep;
    alignas(64) static float from[count], to[count + 64];
    for (int64_t i = 0; i < count; ++i) from[i] = static_cast<float>(i);
    std::fill_n(to, count + 64, -1.0f);
    kernels.copy(from, to, count, 2);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(to[i], from[i]) << unit.name;
    for (int64_t i = count; i < count + 64; ++i) ASSERT_EQ(to[i], -1.0f) << unit.name;
    // Every word read once changes one lane of the checksum; read twice it cancels.
    std::fill_n(from, count, 0.0f);
    EXPECT_EQ(kernels.read(from, count, 1), 0u);
    from[0] = 1.0f;
    EXPECT_EQ(kernels.read(from, count, 1), 0x3f800000u) << unit.name;
    EXPECT_EQ(kernels.read(from, count, 2), 0u) << unit.name;
  }
}

TEST(Roofs, NoUnitNoRoof) {
  Device device = probe_cpu();
  device.units.clear();
  InlineExecutor executor;
  const Status status = measure_roofs(device, executor, 0.01);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().reason, Reason::device_unusable);
}

TEST(Calibrate, KeepsAndFindsAgain) {
  const std::string folder = ::testing::TempDir() + "sparkle_roofs_test/deep";
  std::filesystem::remove_all(folder);
  InlineExecutor executor;
  const CalibrateOptions options{.folder = folder, .seconds = 0.02};
  Device first = probe_cpu({.threads = 1});
  const Device bare = first;
  EXPECT_FALSE(kept_roofs(first, executor, folder).has_value());
  EXPECT_EQ(first, bare);
  EXPECT_FALSE(std::filesystem::exists(folder));  // looking leaves no traces
  const auto measured = calibrate(first, executor, options);
  ASSERT_TRUE(measured.ok()) << measured.error().message;
  EXPECT_TRUE(first.calibrated);
  ASSERT_TRUE(std::filesystem::exists(measured->path));

  Device second = probe_cpu({.threads = 1});
  const auto kept = calibrate(second, executor, options);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(first, second);  // no two measurements agree in every digit
  EXPECT_NEAR(static_cast<double>(kept->measured_at), static_cast<double>(measured->measured_at), 5);
  Device third_time = probe_cpu({.threads = 1});
  const auto looked = kept_roofs(third_time, executor, folder);
  ASSERT_TRUE(looked.has_value());
  EXPECT_EQ(looked->path, measured->path);
  EXPECT_EQ(first, third_time);

  Device forced = probe_cpu({.threads = 1});
  ASSERT_TRUE(calibrate(forced, executor, {.force = true, .folder = folder, .seconds = 0.02}).ok());
  EXPECT_NE(first, forced);

  // Other cores, other file; damage is measured anew.
  Device wider = probe_cpu({.threads = 7});
  EXPECT_NE(calibrate(wider, executor, options)->path, measured->path);
  std::ofstream(measured->path) << "damage";
  Device third = probe_cpu({.threads = 1});
  ASSERT_TRUE(calibrate(third, executor, options).ok());
  EXPECT_NE(forced, third);
  std::filesystem::remove_all(folder);
}

TEST(Calibrate, NowhereToWriteIsFine) {
  Device device = probe_cpu({.threads = 1});
  InlineExecutor executor;
  const auto result = calibrate(device, executor, {.folder = "/proc/nowhere", .seconds = 0.02});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(result->path.empty());
  EXPECT_TRUE(device.calibrated);
}

}  // namespace
}  // namespace sparkle::cpu
