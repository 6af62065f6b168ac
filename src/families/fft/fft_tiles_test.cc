// Transforms on GPUs keep within a workgroup's shared memory, and what is predicted of them follows from their sizes.
#include "families/fft/fft_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "families/registry.h"
#include "families/stage.h"

namespace sparkle {
namespace {

Device gpu(int64_t shared) {
  Device d;
  d.kind = DeviceKind::vulkan;
  d.cores = 96;
  d.memory.resize(3);
  d.memory[0].name = "shared", d.memory[0].filled_by_hand = true, d.memory[0].bytes = 131072;
  d.memory[1].name = "L2", d.memory[1].bytes = 1 << 22, d.memory[1].shared_by = 96;
  d.memory[2].name = "DRAM", d.memory[2].bytes = int64_t{1} << 34, d.memory[2].shared_by = 96;
  d.limits.max_threads_per_group = 1024, d.limits.shared_bytes_per_group = shared;
  MathUnit lanes;
  lanes.name = "fma-f32", lanes.n = 32, lanes.flops_per_second = 6e11;
  d.units.push_back(lanes);
  return d;
}

Stage layer(int64_t groups, int64_t c, int64_t k, int64_t size, int64_t filter) {
  FftParams p;
  p.groups = groups;
  p.window.filter = {1, filter, filter}, p.window.pad_begin = p.window.pad_end = {0, filter / 2, filter / 2};
  const Dims x{1, c, size, size}, y{1, k, size, size};
  return {p,
          {{DType::f32, x, channels_last(x)}, dense_desc(DType::f32, {k, c / groups, filter, filter})},
          {{DType::f32, y, channels_last(y)}}};
}

std::vector<FftTileSchedule> schedules(const Stage& stage, std::string_view variant, const Device& device, Reason& why) {
  std::vector<FftTileSchedule> found;
  why = Reason::none;
  for (const Variant& v : info(Family::fft).variants)
    if (v.name == variant)
      for (const Schedule& s : info(Family::fft).schedules(stage, v, device, why)) found.push_back(get<FftTileSchedule>(s));
  return found;
}

TEST(FftTiles, KeepWithinTheLimits) {
  Reason why = Reason::none;
  for (const int64_t shared : {16384, 32768, 49152, 65536})
    for (const auto& [stage, variant] :
         {std::pair{layer(32, 32, 32, 56, 31), "whole"}, std::pair{layer(1, 64, 64, 112, 13), "points"},
          std::pair{layer(4, 32, 64, 40, 9), "points"}}) {
      const auto found = schedules(stage, variant, gpu(shared), why);
      ASSERT_FALSE(found.empty()) << variant << " " << shared;
      for (const FftTileSchedule& s : found) {
        EXPECT_LE(fft_shared_bytes(s), shared);
        EXPECT_LE(s.threads, 1024);
        for (const int64_t points : {s.rows, s.columns})
          EXPECT_LE(fft_radices(points, kFftGpuRegisters).size(), kMostFftPasses) << points;
        EXPECT_EQ(s.product.m > 0, std::string_view(variant) == "points");
        const auto back = schedule_from_text(Family::fft, to_text(Schedule(s)));
        ASSERT_TRUE(back.ok()) << back.error().message;
        EXPECT_EQ(*back, Schedule(s));
      }
    }
}

TEST(FftTiles, RefusalsNameTheReason) {
  Reason why = Reason::none;
  const Stage depthwise = layer(32, 32, 32, 56, 31), dense = layer(1, 32, 32, 56, 31);
  EXPECT_TRUE(schedules(depthwise, "points", gpu(49152), why).empty());
  EXPECT_EQ(why, Reason::groups_not_served);
  EXPECT_TRUE(schedules(dense, "whole", gpu(49152), why).empty());
  EXPECT_EQ(why, Reason::groups_not_served);
  EXPECT_TRUE(schedules(layer(1, 8, 8, 300, 101), "points", gpu(49152), why).empty());  // no tile in shared memory
  EXPECT_EQ(why, Reason::filter_not_served);
  Stage fp16 = depthwise;
  fp16.inputs[0].dtype = DType::f16;
  EXPECT_TRUE(schedules(fp16, "whole", gpu(49152), why).empty());
  EXPECT_EQ(why, Reason::type_not_served);
  Device none = gpu(49152);
  none.units.clear();
  EXPECT_TRUE(schedules(depthwise, "whole", none, why).empty());
  EXPECT_EQ(why, Reason::unit_missing);
}

// One tile of a plane that shared memory holds: nothing but operands and filters at their frequencies moves beyond the L2.
TEST(FftTiles, WholeChannelsMoveOnce) {
  const Stage stage = layer(256, 256, 256, 56, 31);
  const Device device = gpu(65536);
  FftTileSchedule s{"whole", "fma-f32", 72, 72, 1, 256, {}};
  const Footprint f = info(Family::fft).footprint(stage, s, device);
  const double operands = 2.0 * 256 * 56 * 56 * 4, filters = 128.0 * 72 * 37 * 16;
  ASSERT_EQ(f.bytes.size(), 3u);
  EXPECT_DOUBLE_EQ(f.bytes[2], operands + filters);
  EXPECT_GT(f.bytes[1], f.bytes[2]);  // pieces of pixels
  EXPECT_EQ(f.parallel_items, 128);
  EXPECT_EQ(f.workspace_bytes, 0);
  EXPECT_LT(f.executed_flops, f.nominal_flops);
  s.pairs = 1, s.rows = s.columns = 32;  // tiles of 2x2 outputs
  EXPECT_GT(info(Family::fft).footprint(stage, s, device).executed_flops, 20 * f.executed_flops);
}

}  // namespace
}  // namespace sparkle
