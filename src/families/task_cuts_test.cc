// Tasks of layers on some cores: all cores end together, and where it costs next to nothing there are several for each.
#include <gtest/gtest.h>

#include "base/round_up.h"
#include "families/avx512_machine_testing.h"
#include "families/direct/direct.h"
#include "families/family.h"
#include "families/registry.h"
#include "families/winograd/winograd.h"

namespace sparkle {
namespace {

using testing::avx512_machine;

TensorDesc square_maps(int64_t c, int64_t size) { return {DType::f32, {1, c, size, size}, channels_last({1, c, size, size})}; }

// A layer that keeps the size of its maps.
template <class Params>
Stage square_layer(Params params, int64_t c, int64_t k, int64_t size, int64_t filter) {
  params.window = {{1, filter, filter}, {1, 1, 1}, {1, 1, 1}, {0, filter / 2, filter / 2}, {0, filter / 2, filter / 2}};
  return {params, {square_maps(c, size), dense_desc(DType::f32, {k, c, filter, filter})}, {square_maps(k, size)}};
}

std::vector<Schedule> schedules_of(const Stage& stage, std::string_view name, const Device& device) {
  const FamilyInfo& family = info(stage.family());
  for (const Variant& variant : family.variants)
    if (variant.name == name) {
      Reason why_not = Reason::none;
      return family.schedules(stage, variant, device, why_not);
    }
  return {};
}

int64_t ranges_with(const Stage& stage, int64_t strip, int cores) {
  for (const Schedule& s : schedules_of(stage, "strip6x4", avx512_machine(cores)))
    if (get<WinogradSchedule>(s).strip == strip) return get<WinogradSchedule>(s).ranges;
  return 0;
}

TEST(TaskCuts, RangesOfWinogradEndTogether) {
  WinogradParams p;
  const Stage large = square_layer(p, 256, 256, 56, 3);  // 196 tiles, 4 panels
  EXPECT_EQ(ranges_with(large, 72, 1), 1);
  EXPECT_EQ(ranges_with(large, 72, 2), 2);  // 6 tasks: 3 alone would take as long as 4
  EXPECT_EQ(ranges_with(large, 36, 2), 1);  // 6 strips, 3 for each
  const Stage small = square_layer(p, 256, 256, 14, 3);
  EXPECT_EQ(ranges_with(small, 18, 2), 2);  // inputs transformed four times would cost 6 %
  EXPECT_EQ(ranges_with(small, 18, 8), 4);  // no more than panels
  EXPECT_EQ(ranges_with(square_layer(p, 64, 64, 14, 3), 18, 2), 1);
  p.tile = 2;
  EXPECT_EQ(ranges_with(square_layer(p, 512, 512, 7, 3), 18, 2), 4);  // 1.5 %
}

TEST(TaskCuts, WinogradIsPredictedByItsTasks) {
  const Stage stage = square_layer(WinogradParams{}, 256, 256, 56, 3);
  for (const int cores : {1, 2, 3, 4, 8, 16}) {
    const Device device = avx512_machine(cores);
    for (const Schedule& schedule : schedules_of(stage, "strip6x4", device)) {
      const auto& s = get<WinogradSchedule>(schedule);
      const Footprint f = info(Family::winograd).footprint(stage, schedule, device);
      EXPECT_EQ(f.parallel_items, static_cast<double>(divided(196, s.strip) * s.ranges)) << to_text(schedule);
    }
  }
}

// Rows of a 1x1 layer share nothing: as many tasks as cores can take. Larger filters lay the rows above a task's own again.
TEST(TaskCuts, RowsOfDirectLayers) {
  const auto rows = [](const Stage& stage, int cores) {
    return get<DirectSchedule>(schedules_of(stage, "maps", avx512_machine(cores)).at(0)).rows;
  };
  const Stage products = square_layer(DirectParams{}, 96, 576, 14, 1), windows = square_layer(DirectParams{}, 16, 64, 14, 3);
  EXPECT_EQ(rows(products, 1), 0);
  for (const int cores : {2, 4, 8, 16}) {
    EXPECT_EQ(rows(products, cores), 1) << cores;
    EXPECT_GE(rows(windows, cores), 4) << cores;
  }
}

}  // namespace
}  // namespace sparkle
