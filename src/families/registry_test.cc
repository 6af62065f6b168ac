// The registry: each family's row is whole and found by its number, its name and its parameters.
#include "families/registry.h"

#include <gtest/gtest.h>

#include "families/fft/fft.h"
#include "families/gemm/gemm.h"

namespace sparkle {
namespace {

TEST(Registry, RowsAreWhole) {
  for (int i = 0; i < kFamilies; ++i) {
    const auto number = static_cast<Family>(i);
    const FamilyInfo& family = info(number);
    Family found{};
    EXPECT_TRUE(parse_name(family.name, found) && found == number && family.params.family == number) << i;
    EXPECT_TRUE(!family.variants.empty() && family.reference && family.footprint && family.schedules) << family.name;
    EXPECT_TRUE(family.samples && family.sample_forms && !family.sample_forms().empty()) << family.name << " has no samples";
  }
}

TEST(Registry, ParametersComeBackFromText) {
  const StageParams params = GemmParams{Loader::dense, 3, {}, {}};
  const auto back = params_from_text(Family::gemm, to_text(params));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, params);
  EXPECT_FALSE(params_from_text(Family::pool, to_text(params)).ok());
}

TEST(Registry, SchedulesComeBackFromText) {
  const auto check = [](Family family, const Schedule& schedule) {
    const auto back = schedule_from_text(family, to_text(schedule));
    ASSERT_TRUE(back.ok()) << to_text(schedule);
    EXPECT_EQ(*back, schedule);
  };
  check(Family::gemm, GemmSchedule{});
  check(Family::gemm, TileSchedule{"implicit", "fma-f32", 64, 64, 16, 4, 4});
  check(Family::gemm, LoopSchedule{"naive", "fma-f32", 0});
  check(Family::gemm, LoopSchedule{});
  check(Family::fft, FftSchedule{});
  check(Family::fft, FftTileSchedule{});
  EXPECT_FALSE(schedule_from_text(Family::gemm, "variant=tile6x4 unit=avx2 grain=0").ok());
}

}  // namespace
}  // namespace sparkle
