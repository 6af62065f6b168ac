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

Stage layer(int64_t c, int64_t size, int64_t k, bool fp16 = false) {
  GemmParams p;
  p.window.filter = {1, 3, 3}, p.window.pad_begin = p.window.pad_end = {0, 1, 1};
  if (fp16) p.operands = OperandType::f16;
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
        for (const bool fp16 : {false, true}) {
          const auto found = tiles(layer(64, 56, 64, fp16), fp16 ? "cooperative" : "implicit", d);
          // Fragments of a subgroup of 64 take more than a small device has.
          ASSERT_TRUE((fp16 && shared <= 16384) || !found.empty()) << shared << " " << threads << " " << registers;
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
  EXPECT_EQ(footprint(stage, parts, gpu()).parallel_items, 8 * footprint(stage, whole, gpu()).parallel_items);
  EXPECT_GT(footprint(stage, parts, gpu()).workspace_bytes, footprint(stage, whole, gpu()).workspace_bytes);
}

// Cores have two to four workgroups each where sums are long enough for it.
TEST(GemmTiles, SumsAreSplitUntilCoresAreBusy) {
  const Stage stage = layer(2048, 7, 512);
  std::set<int> per_core;
  for (const TileSchedule& s : tiles(stage, "implicit", gpu())) {
    const int groups = (49 + s.m - 1) / s.m * ((512 + s.n - 1) / s.n) * s.split;
    EXPECT_LE(groups, 4 * 96);
    if (s.split > 1) per_core.insert((groups + 95) / 96);
  }
  ASSERT_FALSE(per_core.empty());
  EXPECT_EQ(*per_core.begin(), 1);
  EXPECT_EQ(*per_core.rbegin(), 4);
}

// A core with one small workgroup has a part of its rate; more of them fill it, and the last of all may have a core alone.
TEST(GemmTiles, SmallWorkgroupsFillAPartOfACore) {
  Device d = gpu();
  TileSchedule s;
  s.variant = "implicit", s.unit = "fma-f32", s.m = s.n = 64, s.k = 16, s.thread_m = s.thread_n = 8, s.subgroup = 32;
  const auto units = [&](int64_t size, int64_t filters) {
    const Stage stage = layer(64, size, filters);
    return info(Family::gemm).footprint(stage, s, d).parallel_items;
  };
  EXPECT_EQ(units(8, 64), 1);
  EXPECT_EQ(units(16, 512), 32);
  d.limits.schedulers_per_core = 4;  // which eight subgroups keep busy; a workgroup has two
  EXPECT_EQ(units(16, 512), 8);
  EXPECT_EQ(units(64, 256), 64);            // 256 workgroups, three on some cores: as fast as 64 at full rate
  EXPECT_NEAR(units(128, 512), 93.1, 0.1);  // 2048, 22 on some cores
  d.limits.schedulers_per_core = 1;
  EXPECT_EQ(units(16, 512), 32);
}

// What workgroups that run at once share is read once past the cache that they share, also where not all of it fits.
TEST(GemmTiles, WavesShareWhatTheyRead) {
  Device d = gpu();
  const auto level = [&](const char* name, int64_t bytes, int shared_by) {
    MemoryLevel l;
    l.name = name, l.bytes = bytes, l.shared_by = shared_by;
    d.memory.push_back(l);
  };
  level("shared", 65536, 1), level("L2", 50 << 20, 96), level("DRAM", int64_t{16} << 30, 96);
  d.memory[0].filled_by_hand = true;
  Stage stage = layer(384, 13, 384, true);
  const Dims x{128, 384, 13, 13};
  stage.inputs[0] = {DType::f32, x, channels_last(x)}, stage.outputs[0] = stage.inputs[0];
  const auto compulsory = static_cast<double>(stage.inputs[0].bytes() + stage.inputs[1].bytes() + stage.outputs[0].bytes());
  const auto found = tiles(stage, "cooperative", d);
  ASSERT_FALSE(found.empty());
  for (const TileSchedule& s : found) {
    const Footprint f = info(Family::gemm).footprint(stage, s, d);
    EXPECT_GE(f.bytes[2], compulsory);
    EXPECT_LE(f.bytes[2], 2 * compulsory) << to_text(Schedule(s));
    EXPECT_GT(f.bytes[1], 10 * compulsory);
  }
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

TEST(GemmTiles, StepsSayWhatTheyDoNotSupport) {
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

TEST(GemmTiles, FragmentsTakeTheSubgroupsThatTheyDemand) {
  Stage stage = layer(64, 56, 64, true);
  for (auto* list : {&stage.inputs, &stage.outputs})
    for (TensorDesc& tensor : *list) tensor.dtype = DType::f16;
  const auto sizes = [&](int least, int demanded) {
    Device d = gpu();
    d.limits.matrix_subgroup_size = demanded, d.limits.subgroup_size = 32;
    d.units[0].n = least;
    d.units[1] = matrix(fragment_unit_name({8, least, 16}), 8, least, 16);
    d.units.push_back(d.units[0]);
    d.units.back().name = "fma-f16";
    std::set<int> found;
    for (const TileSchedule& s : tiles(stage, "cooperative", d)) found.insert(s.subgroup);
    return found;
  };
  EXPECT_EQ(sizes(16, 0), (std::set<int>{16, 32}));
  EXPECT_EQ(sizes(16, 16), std::set<int>{16});  // Xe2
  EXPECT_EQ(sizes(8, 0), std::set<int>{32});
  EXPECT_EQ(sizes(8, 8), std::set<int>{});  // Xe-HPG: eight lanes would hold too much each
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
