// Levels of memory from simulated curves: caches of described GPUs, that replace what was used longest ago or anything, with
// noise and outliers.
#include "device/memory_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "device/device_json.h"

namespace sparkle {
namespace {

constexpr double kMB = 1 << 20;

struct Simulated {
  const char* name;
  std::vector<CurveLevel> levels;
};
const std::vector<Simulated> kGpus = {
    {"H200", {{50 * kMB, 7e12}, {0, 4.8e12}}},
    {"RTX 3090", {{6 * kMB, 2.8e12}, {0, 9.36e11}}},
    {"RX 7900 XTX", {{6 * kMB, 5.6e12}, {96 * kMB, 3.5e12}, {0, 9.6e11}}},
    {"Arc A770", {{16 * kMB, 2e12}, {0, 5.6e11}}},
    {"Vega 64", {{4 * kMB, 1.6e12}, {0, 4.838e11}}},
    {"RX 6900 XT", {{4 * kMB, 3.7e12}, {128 * kMB, 1.6e12}, {0, 5.12e11}}},
};

// The share of reads that miss a cache when a working set is read over and over. Least recently used: all, with the borders
// blurred by what runs ahead; any at random: a line stays with probability exp(-misses * set / cache).
double missing(double set, double cache, bool random) {
  if (!random) return std::clamp((set / cache - 1) / 0.25, 0.0, 1.0);
  double miss = 1;
  for (int i = 0; i < 200; ++i) miss = 1 - std::exp(-miss * set / cache);
  return set <= cache ? 0 : miss;
}

double seconds_of(const std::vector<CurveLevel>& levels, double set, bool random) {
  double seconds = 0, reached = 1;
  for (const CurveLevel& level : levels) {
    const double miss = level.bytes > 0 ? missing(set, level.bytes, random) : 0;
    seconds += reached * (1 - miss) / level.bytes_per_second;
    reached *= miss;
  }
  return seconds;
}

TEST(MemoryCurve, FindsTheCachesOfDescribedGpus) {
  std::mt19937 draw(7);
  for (const Simulated& gpu : kGpus)
    for (const bool random : {false, true})
      for (int round = 0; round < 200; ++round) {
        std::normal_distribution<double> noise(0, 0.03);
        std::vector<CurvePoint> curve;
        for (const double set : working_sets(kMB / 2, 1024 * kMB))
          curve.push_back({set, seconds_of(gpu.levels, set, random) * std::exp(std::abs(noise(draw)))});
        // Something else had the device for a moment.
        if (round % 2) curve[draw() % curve.size()].seconds_per_byte *= 3;
        std::shuffle(curve.begin(), curve.end(), draw);
        const auto found = levels_of(curve);
        ASSERT_EQ(found.size(), gpu.levels.size()) << gpu.name << " random " << random << " trial " << round;
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_NEAR(found[i].bytes_per_second / gpu.levels[i].bytes_per_second, 1, 0.15) << gpu.name << " level " << i;
          if (gpu.levels[i].bytes == 0) continue;
          EXPECT_GE(found[i].bytes, 0.6 * gpu.levels[i].bytes) << gpu.name << " random " << random << " trial " << round;
          EXPECT_LE(found[i].bytes, 1.35 * gpu.levels[i].bytes) << gpu.name << " random " << random << " trial " << round;
        }
        EXPECT_EQ(found.back().bytes, 0);
      }
}

TEST(MemoryCurve, SurvivesCurvesThatSayLittle) {
  EXPECT_TRUE(levels_of({}).empty());
  const CurvePoint nothing[] = {{0, 1}, {1, 0}, {1, -1}, {1, NAN}, {INFINITY, 1}};
  EXPECT_TRUE(levels_of(nothing).empty());
  const CurvePoint one[] = {{1024, 1e-9}};
  ASSERT_EQ(levels_of(one).size(), 1u);
  EXPECT_NEAR(levels_of(one)[0].bytes_per_second, 1e9, 1);
  std::vector<CurvePoint> flat;
  for (const double set : working_sets(1e6, 1e9)) flat.push_back({set, 1e-12});
  EXPECT_EQ(levels_of(flat).size(), 1u);
}

TEST(MemoryCurve, WorkingSetsAreTwoToAnOctave) {
  EXPECT_EQ(working_sets(1024, 4096), (std::vector<double>{1024, 1536, 2048, 3072, 4096}));
  EXPECT_EQ(working_sets(1200, 3000), (std::vector<double>{1536, 2048}));
  EXPECT_TRUE(working_sets(10, 5).empty());
}

TEST(MemoryCurve, CachesStandBetweenSharedMemoryAndDram) {
  Device device;
  device.kind = DeviceKind::vulkan, device.limits.max_threads_per_group = 1024, device.cores = 96;
  MemoryLevel shared, dram;
  shared.name = "shared", shared.filled_by_hand = true, dram.name = "DRAM";
  device.memory = {shared, dram};
  const Device bare = device;
  const double one[] = {1e11};
  put_caches(device, kGpus[2].levels, one);
  ASSERT_EQ(device.memory.size(), 4u);
  EXPECT_EQ(device.memory[1].name, "L2");
  EXPECT_EQ(device.memory[1].bytes_per_second, 1e11);
  EXPECT_EQ(device.memory[2].name, "L3");
  EXPECT_EQ(device.memory[2].bytes, 96 * (1 << 20));
  EXPECT_NEAR(device.memory[2].bytes_per_second, 3.5e12 / 96, 1);
  put_caches(device, kGpus[0].levels);
  EXPECT_EQ(device.memory.size(), 3u);
  remove_caches(device);
  EXPECT_EQ(device, bare);
}

}  // namespace
}  // namespace sparkle
