// Every variant of the registry for Vulkan has a self-test, and it runs; and variants on matrix units are timed against the
// plain one.
#include <filesystem>
#include <set>

#include "backends/self_tests/self_test_speed.h"
#include "backends/vulkan/self_tests/self_test_samples_testing.h"
#include "backends/self_tests/verdict_cache.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/pool/pool.h"
#include "families/registry.h"

namespace sparkle::vulkan {
namespace {

TEST(VulkanSelfTests, EveryVariantHasOneThatRuns) {
  SPARKLE_NEEDS_VULKAN(backend);
  // Variants whose units software devices have not; here they are only seen to have stages. Other types:
  // self_test_elements_test.cc.
  const std::set<std::string> elsewhere{"gemm/cooperative", "gemm/cooperative_group", "gemm/dot_tile"};
  int variants = 0, run = 0;
  for (int f = 0; f < kFamilies; ++f) {
    const FamilyInfo& family = info(static_cast<Family>(f));
    for (const Variant& v : family.variants) {
      if (!v.runs_on(backend->device())) continue;
      ++variants;
      const std::string name = std::string(family.name) + "/" + std::string(v.name);
      const auto self_tests = samples(static_cast<Family>(f));
      EXPECT_FALSE(self_tests.empty()) << name << " has no self-test, and no reason why";
      int tried = 0;
      size_t stages = 0;
      for (SelfTest t : self_tests) {
        t.schedule = LoopSchedule{std::string(v.name), "fma-f32", 0};
        stages += stages_of(t).size();
        if (!schedule_for(t, v, backend->device())) continue;
        const auto before = backend->counters().submissions;
        const Status ran = run_self_test(*backend, t, std::chrono::minutes(1));
        EXPECT_TRUE(ran.ok()) << t.to_text() << ": " << (ran.ok() ? "" : ran.error().message);
        tried += backend->counters().submissions > before;
        const auto back = SelfTest::from_text(t.to_text());
        ASSERT_TRUE(back.ok()) << back.error().message;
        EXPECT_EQ(back->to_text(), t.to_text());
      }
      EXPECT_GT(stages, 0u) << name;
      EXPECT_TRUE(tried > 0 || elsewhere.count(name)) << name;
      run += tried;
    }
  }
  EXPECT_GT(variants, 30);
  std::printf("%d variants, %d self-tests\n", variants, run);
}

// What a self-test demands of a sum, its activation must not take away.
TEST(VulkanSelfTests, ActivationsKeepNan) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (int i = 0; i <= static_cast<int>(Activation::mish); ++i) {
    SelfTest t = samples(Family::gemm)[0];
    Epilogue& e = get<GemmParams>(t.params).epilogue;
    e.activation = static_cast<Activation>(i), e.a = 0.25, e.b = 0.75;
    TileSchedule s;
    s.variant = "naive", s.unit = "fma-f32", s.m = 64;
    t.schedule = s;
    const Status ran = run_self_test(*backend, t, std::chrono::minutes(1));
    EXPECT_TRUE(ran.ok()) << name_of(e.activation) << ": " << (ran.ok() ? "" : ran.error().message);
  }
}

// Kernels that do nothing fail the self-tests of families that move elements too.
TEST(VulkanSelfTests, MovesThatDoNothingAreFound) {
  ContextOptions options;
  options.cache = false;
  for (const Family family : {Family::pad, Family::gather, Family::attention}) {
    std::string why;
    SelfTest t = samples(family)[0];
    const std::string variant = family == Family::attention ? "blocks" : "units";
    t.schedule = LoopSchedule{variant, "fma-f32", 0};
    const auto backend = test_backend(options, why, {.nothing = std::string(name_of(family)) + "/" + variant});
    if (!backend) GTEST_SKIP() << why;
    const Status tried = run_self_test(*backend, t, std::chrono::minutes(1));
    ASSERT_FALSE(tried.ok()) << t.to_text();
    EXPECT_EQ(tried.error().reason, Reason::failed_probe);
  }
}

// The shader for matrix units on its stand-in, which is timed as any other: `late` makes it, or what it is compared with, take
// some milliseconds more.
struct Verdict {
  bool skipped = false;
  std::string denylist;
  std::vector<std::string> findings, speeds;
};
Verdict verdict_with(const std::string& late) {
  const std::string folder = ::testing::TempDir() + "sparkle_speed_" + std::to_string(late.size());
  std::filesystem::create_directories(folder);
  ContextOptions options;
  options.cache_folder = folder;
  Verdict v;
  SelfTest t;
  GemmParams p;
  p.loader = Loader::dense, p.operands = OperandType::f16;
  t.params = p;
  TileSchedule s;
  s.variant = "cooperative", s.unit = kEmulatedUnit;
  s.subgroup = 32, s.pad = kFragmentPad, s.k = 32, s.depth = 2;
  s.thread_m = s.m = 16, s.thread_n = s.n = 32;
  t.schedule = s;
  t.inputs = {DType::f32, DType::f32}, t.outputs = {DType::f32};
  std::string why;
  if (auto backend = test_backend(options, why, {.late = late}); backend && backend->context().features().f16) {
    const Status tried = backend->try_lines(t.to_text() + "\n");
    EXPECT_TRUE(tried.ok()) << tried.error().message;
    // What was measured is known to the next process on this driver.
    backend = test_backend(options, why);
    const auto before = backend->counters().submissions;
    EXPECT_TRUE(backend->try_lines(t.to_text() + "\n").ok());
    EXPECT_EQ(backend->counters().submissions, before);
    v.denylist = backend->device().denylist, v.findings = backend->findings(), v.speeds = backend->speeds();
  } else {
    v.skipped = true;
  }
  std::filesystem::remove_all(folder);
  return v;
}

TEST(VulkanSelfTests, MatrixUnitsThatAreSlowerAreDenied) {
  const Verdict v = verdict_with("gemm/cooperative");
  if (v.skipped) GTEST_SKIP() << "SKIP: no Vulkan device with 16-bit floats";
  EXPECT_EQ(v.denylist, "gemm/cooperative");
  ASSERT_EQ(v.findings.size(), 1u);
  EXPECT_NE(v.findings[0].find("not worth it: takes"), std::string::npos) << v.findings[0];
  EXPECT_NE(v.findings[0].find("times as long as gemm/implicit"), std::string::npos) << v.findings[0];
  EXPECT_TRUE(v.speeds.empty());
  std::printf("%s\n", v.findings[0].c_str());
}

TEST(VulkanSelfTests, MatrixUnitsThatAreFasterAreKept) {
  const Verdict v = verdict_with("gemm/implicit");
  if (v.skipped) GTEST_SKIP() << "SKIP: no Vulkan device with 16-bit floats";
  EXPECT_EQ(v.denylist, "");
  EXPECT_TRUE(v.findings.empty());
  ASSERT_EQ(v.speeds.size(), 1u);
  EXPECT_NE(v.speeds[0].find("gemm/cooperative takes 0."), std::string::npos) << v.speeds[0];
  std::printf("%s\n", v.speeds[0].c_str());
}

// Without a fault either may come, but one of them, and it is told.
TEST(VulkanSelfTests, MatrixUnitsAreTimedAsTheyAre) {
  const Verdict v = verdict_with("");
  if (v.skipped) GTEST_SKIP() << "SKIP: no Vulkan device with 16-bit floats";
  ASSERT_EQ(v.findings.size() + v.speeds.size(), 1u);
  EXPECT_EQ(v.denylist, v.findings.empty() ? "" : "gemm/cooperative");
  std::printf("%s\n", (v.findings.empty() ? v.speeds : v.findings)[0].c_str());
}

TEST(VulkanSelfTests, OnlyMatrixUnitsOfGpusAreTimed) {
  SelfTest t;
  t.params = GemmParams{};
  TileSchedule s;
  for (const Variant& v : info(Family::gemm).variants) {
    s.variant = v.name;
    t.schedule = s;
    EXPECT_EQ(needs_speed(t), v.backends.support(DeviceKind::vulkan) && v.unit == UnitKind::matrix) << v.name;
  }
  t.params = PoolParams{};
  EXPECT_FALSE(needs_speed(t));
}

}  // namespace
}  // namespace sparkle::vulkan
