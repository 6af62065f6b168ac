// The registry: each family's row is whole and found by its number, its name and its parameters.
#include "families/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

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

// "gemm/tile6x4" for what steps of golden plans run, lines "name | algorithm | problem | schedule | ...". `of`: of files with
// this in their names.
std::set<std::string> variants_of_golden_plans(const std::string& of = "") {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(SPARKLE_SOURCE_DIR "/tests/golden_plans")) {
    if (entry.path().filename().string().find(of) == std::string::npos) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const size_t algorithm = line.find(" | ") + 3, schedule = line.find(" | variant=");
      if (schedule == std::string::npos) continue;
      const std::string_view rest = std::string_view(line).substr(schedule + 11);
      // An algorithm is called by its family and a number or type; matrix_f16 and sums_f16 are algorithms of the gemm family.
      std::string family = "gemm";
      for (int i = 0; i < kFamilies; ++i)
        if (const std::string name(info(static_cast<Family>(i)).name); line.compare(algorithm, name.size(), name) == 0)
          family = name;
      found.insert(family + "/" + std::string(rest.substr(0, rest.find(' '))));
    }
  }
  return found;
}

// CUDA's kernels, those that Vulkan has too among them, are defaults of golden plans of NVIDIA's cards.
TEST(Registry, EachVariantOfCudaIsADefaultOfACard) {
  const std::set<std::string> chosen = variants_of_golden_plans("-cuda");
  ASSERT_GT(chosen.size(), 30u);
  Device card;
  card.kind = DeviceKind::cuda;
  for (int i = 0; i < kFamilies; ++i)
    for (const Variant& variant : info(static_cast<Family>(i)).variants) {
      if (!variant.runs_on(card)) continue;
      const std::string name = std::string(info(static_cast<Family>(i)).name) + "/" + std::string(variant.name);
      if (reason_of(variant).empty()) {
        EXPECT_EQ(chosen.count(name), 1u) << name << " is the default in no golden plan of a card of NVIDIA's";
      }
    }
}

// Nothing is built and left unconnected: a variant is the planner's choice somewhere, or its row says what else it is for.
// Somewhere is any golden plan: published networks, whole or some of their blocks, but also made-up ones (an fp16 residual
// block, a decoder's step ...) and, for families that no network here has, 11 single operators (tests/golden_plans_test.cc).
TEST(Registry, EachVariantIsADefaultOrSaysWhyItIsThere) {
  const std::set<std::string> chosen = variants_of_golden_plans();
  ASSERT_GT(chosen.size(), 50u);
  std::set<std::string_view> reasons;
  for (int i = 0; i < kFamilies; ++i)
    for (const Variant& variant : info(static_cast<Family>(i)).variants) {
      const std::string name = std::string(info(static_cast<Family>(i)).name) + "/" + std::string(variant.name);
      const std::string_view reason = reason_of(variant);
      reasons.insert(reason);
      if (chosen.count(name)) EXPECT_TRUE(reason.empty() || reason == "fallback: ") << name << " is a default: " << reason;
      else EXPECT_FALSE(reason.empty()) << name << " is the default in no golden plan, and its note gives no reason";
    }
  for (const std::string_view reason : kVariantReasons) EXPECT_EQ(reasons.count(reason), 1u) << reason;
}

}  // namespace
}  // namespace sparkle
