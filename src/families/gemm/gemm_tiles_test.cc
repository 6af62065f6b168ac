// Tiles for GPUs follow from a device's limits: what fits its shared memory and registers, which subgroups it has, how many
// cores wait for work.
#include "families/gemm/gemm_tiles.h"

#include <gtest/gtest.h>

#include <set>

#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "families/stage.h"

namespace sparkle {
namespace {

Device gpu() {
  Device d;
  d.kind = DeviceKind::vulkan;
  d.cores = 96;
  d.limits.max_threads_per_group = 1024, d.limits.shared_bytes_per_group = 65536, d.limits.subgroup_size = 64;
  MathUnit lanes;
  lanes.name = "fma-f32", lanes.n = 32;
  d.units.push_back(lanes);
  MathUnit matrix;
  matrix.name = kFragmentUnit, matrix.kind = UnitKind::matrix, matrix.m = matrix.n = matrix.k = 16;
  d.units.push_back(matrix);
  return d;
}

Stage layer(int64_t c, int64_t size, int64_t k, bool halves = false) {
  GemmParams p;
  p.window.filter = {1, 3, 3}, p.window.pad_begin = p.window.pad_end = {0, 1, 1};
  p.halves = halves;
  const Dims x{1, c, size, size}, y{1, k, size, size};
  return {p, {{DType::f32, x, channels_last(x)}, dense_desc(DType::f32, {k, c, 3, 3})}, {{DType::f32, y, channels_last(y)}}};
}

std::vector<TileSchedule> tiles(const Stage& stage, std::string_view variant, const Device& device, Reason* why = nullptr) {
  Reason reason = Reason::none;
  std::vector<TileSchedule> found;
  for (const Variant& v : info(Family::gemm).variants)
    if (v.name == variant)
      for (const Schedule& s : info(Family::gemm).schedules(stage, v, device, reason)) found.push_back(get<TileSchedule>(s));
  if (why) *why = reason;
  return found;
}

TEST(GemmTiles, KeepWithinTheLimits) {
  for (const int64_t shared : {16384, 32768, 65536})
    for (const int threads : {128, 1024})
      for (const int registers : {192, 256}) {
        Device d = gpu();
        d.limits.shared_bytes_per_group = shared, d.limits.max_threads_per_group = threads;
        d.limits.registers_per_thread = registers;
        for (const bool halves : {false, true}) {
          const auto found = tiles(layer(64, 56, 64, halves), halves ? "cooperative" : "implicit", d);
          // Fragments of a subgroup of 64 take more than a small device has.
          ASSERT_TRUE((halves && shared <= 16384) || !found.empty()) << shared << " " << threads << " " << registers;
          for (const TileSchedule& s : found) {
            const TileNeeds needs = tile_needs(s);
            EXPECT_LE(needs.shared_bytes, shared);
            EXPECT_LE(needs.threads, threads);
            EXPECT_LE(needs.registers, registers);
          }
        }
      }
}

// Half the registers leave tiles whose sums take a sixth of them: a device is not sent to kernels without shared memory.
TEST(GemmTiles, FewRegistersTakeSmallParts) {
  Device d = gpu();
  d.limits.registers_per_thread = 128;
  const auto found = tiles(layer(64, 56, 64), "implicit", d);
  ASSERT_FALSE(found.empty());
  for (const TileSchedule& s : found) EXPECT_LE(s.thread_m * s.thread_n, 16);
}

TEST(GemmTiles, SubgroupsAreThoseOfTheDevice) {
  std::set<int> sizes;
  for (const TileSchedule& s : tiles(layer(64, 56, 64), "implicit", gpu())) sizes.insert(s.subgroup);
  EXPECT_EQ(sizes, (std::set<int>{32, 64}));
  Device d = gpu();
  d.limits.subgroup_size = 32;  // one size: nothing is demanded
  for (const TileSchedule& s : tiles(layer(64, 56, 64), "implicit", d)) EXPECT_EQ(s.subgroup, 0);
}

TEST(GemmTiles, SumsAreSplitWhereCoresWouldIdle) {
  const auto split = [](const Stage& stage) {
    int most = 1;
    for (const TileSchedule& s : tiles(stage, "implicit", gpu())) most = std::max(most, s.split);
    return most;
  };
  EXPECT_GT(split(layer(512, 7, 512)), 4);  // 49 pixels: a handful of tiles for 96 cores
  EXPECT_EQ(split(layer(64, 224, 64)), 1);  // hundreds of tiles
  EXPECT_EQ(split(layer(4, 7, 512)), 1);    // sums too short to share
  // Sharing costs traffic, and pays where it fills the device.
  const Stage stage = layer(512, 7, 512);
  auto found = tiles(stage, "implicit", gpu());
  TileSchedule whole = found[0], parts = whole;
  parts.split = 8;
  const auto& footprint = info(Family::gemm).footprint;
  EXPECT_EQ(footprint(stage, parts, gpu()).parallel_units, 8 * footprint(stage, whole, gpu()).parallel_units);
  EXPECT_GT(footprint(stage, parts, gpu()).workspace_bytes, footprint(stage, whole, gpu()).workspace_bytes);
}

TEST(GemmTiles, OnlyFragmentsRound) {
  Reason why = Reason::none;
  EXPECT_TRUE(tiles(layer(64, 56, 64, true), "implicit", gpu(), &why).empty());
  EXPECT_EQ(why, Reason::type_not_served);
  EXPECT_TRUE(tiles(layer(64, 56, 64), "cooperative", gpu(), &why).empty());
  EXPECT_EQ(why, Reason::type_not_served);
  Device d = gpu();
  d.units.pop_back();
  EXPECT_TRUE(tiles(layer(64, 56, 64, true), "cooperative", d, &why).empty());
  EXPECT_EQ(why, Reason::unit_missing);
}

TEST(GemmTiles, RungsSayWhatTheyDoNotServe) {
  Reason why = Reason::none;
  EXPECT_TRUE(tiles(layer(3, 56, 64), "fours", gpu(), &why).empty());
  EXPECT_EQ(why, Reason::layout_not_served);
  Stage dilated = layer(64, 56, 64);
  get<GemmParams>(dilated.params).window.dilation = {1, 40, 40};
  EXPECT_TRUE(tiles(dilated, "halo", gpu(), &why).empty());  // its patch has 88 x 88 pixels
  EXPECT_EQ(why, Reason::filter_not_served);
  EXPECT_EQ(tiles(layer(64, 56, 64), "halo", gpu()).size(), 1u);
}

MathUnit matrix(const std::string& name, int m, int n, int k) {
  MathUnit unit;
  unit.name = name, unit.kind = UnitKind::matrix, unit.m = m, unit.n = n, unit.k = k;
  return unit;
}

TEST(GemmTiles, FragmentsAreThoseOfTheDevice) {
  Device d = gpu();
  d.units.push_back(matrix(fragment_unit_name({8, 16, 16}), 8, 16, 16));
  d.units.push_back(matrix(fragment_unit_name({4, 16, 16}), 4, 16, 16));  // no kernel
  std::set<std::string> units;
  for (const TileSchedule& s : tiles(layer(64, 56, 64, true), "cooperative", d)) {
    units.insert(s.unit);
    const Fragment f = fragment_of(s);
    EXPECT_EQ(f.m, s.unit == kFragmentUnit ? 16 : 8);
    EXPECT_EQ(s.thread_m % f.m + s.thread_n % f.n + s.k % f.k, 0) << to_text(Schedule(s));
    EXPECT_EQ(f.m * f.n % s.subgroup, 0);
  }
  EXPECT_EQ(units, (std::set<std::string>{"coopmat-f16", "coopmat-f16-8x16x16"}));
}

TEST(GemmTiles, FragmentsOnIntelTakeTheLeastSubgroups) {
  Stage stage = layer(64, 56, 64, true);
  for (auto* list : {&stage.inputs, &stage.outputs})
    for (TensorDesc& tensor : *list) tensor.dtype = DType::f16;
  const auto sizes = [&](int least, const char* vendor) {
    Device d = gpu();
    d.vendor = vendor, d.limits.subgroup_size = 32;
    d.units[0].n = least;
    d.units[1] = matrix(fragment_unit_name({8, least, 16}), 8, least, 16);
    d.units.push_back(d.units[0]);
    d.units.back().name = "fma-f16";
    std::set<int> found;
    for (const TileSchedule& s : tiles(stage, "cooperative", d)) found.insert(s.subgroup);
    return found;
  };
  EXPECT_EQ(sizes(16, ""), (std::set<int>{16, 32}));
  EXPECT_EQ(sizes(16, "Intel"), std::set<int>{16});  // Xe2
  EXPECT_EQ(sizes(8, ""), std::set<int>{32});
  EXPECT_EQ(sizes(8, "Intel"), std::set<int>{});  // Xe-HPG: eight lanes would hold too much each
}

TEST(GemmTiles, WorkgroupsMultiplyAsOne) {
  Device d = gpu();
  Reason why = Reason::none;
  EXPECT_TRUE(tiles(layer(64, 56, 64, true), "cooperative_group", d, &why).empty());
  EXPECT_EQ(why, Reason::unit_missing);
  d.units.push_back(matrix(kGroupUnit, 32, 16, 16));
  d.limits.shared_bytes_per_group = 49152;
  const auto found = tiles(layer(64, 56, 64, true), "cooperative_group", d);
  ASSERT_FALSE(found.empty());
  int largest = 0;
  for (const TileSchedule& s : found) {
    const TileNeeds needs = tile_needs(s);
    EXPECT_EQ(needs.threads, kGroupThreads);
    EXPECT_LE(needs.shared_bytes + kGroupReserved, 49152);
    EXPECT_EQ(s.m % 32 + s.n % 16 + s.k % 16, 0);
    EXPECT_EQ(s.unit, kGroupUnit);
    largest = std::max(largest, s.m * s.n);
  }
  EXPECT_EQ(largest, 128 * 64);
  // Subgroups have their own variant.
  for (const TileSchedule& s : tiles(layer(64, 56, 64, true), "cooperative", d)) EXPECT_EQ(s.unit, kFragmentUnit);
}

}  // namespace
}  // namespace sparkle
