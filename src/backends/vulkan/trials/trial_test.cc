// Every variant of the registry for Vulkan has a trial, and it runs; and variants on matrix units are timed against the plain
// one.
#include <filesystem>
#include <set>

#include "backends/vulkan/trials/speed_trial.h"
#include "backends/vulkan/trials/trust.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle::vulkan {
namespace {

// What a plan's step of the family may be, element types last.
std::vector<Trial> samples(Family family) {
  constexpr DType kF = DType::f32;
  const auto of = [](StageParams params, std::vector<DType> inputs, std::vector<DType> outputs = {DType::f32}) {
    return Trial{{}, std::move(params), std::move(inputs), std::move(outputs)};
  };
  Window window;
  window.filter = {1, 3, 3}, window.pad_begin = window.pad_end = {0, 1, 1};
  const std::vector<DType> bytes{DType::u8, DType::i8, kF, DType::u8, DType::i8, DType::i8};
  switch (family) {
    case Family::gemm: {
      GemmParams p, halves, integers;
      p.window = halves.window = window;
      halves.halves = true;
      integers.window = window, integers.epilogue.scale = true;
      return {of(p, {kF, kF}), of(halves, {kF, kF}), of(integers, bytes, {DType::i8})};
    }
    case Family::winograd: {
      WinogradParams p;
      p.window = window, p.tile = 4;
      return {of(p, {kF, kF})};
    }
    case Family::depthwise: {
      DepthwiseParams p, integers;
      p.window = integers.window = window;
      integers.epilogue.scale = true;
      return {of(p, {kF, kF}), of(integers, bytes, {DType::i8})};
    }
    case Family::pool: {
      PoolParams p, longer;
      p.window = longer.window = window;
      longer.window.filter = {1, 9, 9}, longer.window.pad_begin = longer.window.pad_end = {0, 4, 4};
      return {of(p, {kF}), of(longer, {kF})};
    }
    case Family::pointwise: return {of(PointwiseParams{2, {{PointwiseOp::add, 0, 1, 0, 0, 0}}}, {kF, kF})};
    case Family::reduce: return {of(ReduceParams{ReduceKind::sum, {1}}, {kF})};
    case Family::softmax: return {of(SoftmaxParams{1, 1, false}, {kF})};
    case Family::normalize: return {of(NormalizeParams{}, {kF, kF, kF})};
    case Family::copy: return {of(CopyParams{}, {kF}), of(CopyParams{}, {DType::u8}, {DType::u8})};
    case Family::pad: {
      std::vector<Trial> list;
      for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::edge, PadMode::wrap})
        for (const DType type : {kF, DType::i64})
          list.push_back(of(PadParams{mode, {0, 0, 300, 1}, {0, 0, 2, -1}, 1.5}, {type}, {type}));
      list.push_back(of(PadParams{PadMode::constant, {1, 0, 2, 9, -5, 1, 1, 1}, {0, 0, 0, 0, 0, 3, 0, 1}, 2}, {kF}));
      return list;
    }
    case Family::gather: {
      std::vector<Trial> list;
      for (const DType index : {DType::i32, DType::i64})
        for (const int axis : {0, 1, 5, 7}) {
          list.push_back(of(GatherParams{axis, GatherForm::slices, 0}, {kF, index}));
          list.push_back(of(GatherParams{axis, GatherForm::elements, 0}, {kF, index}));
          list.push_back(of(GatherParams{0, GatherForm::tuples, axis / 2}, {DType::i32, index}, {DType::i32}));
        }
      return list;
    }
    case Family::resize: {
      ResizeParams linear, nearest;
      linear.mode = ResizeMode::linear, nearest.mode = ResizeMode::nearest;
      linear.scales = nearest.scales = {1, 1, 2, 0.5};
      return {of(linear, {kF}), of(nearest, {kF}), of(nearest, {DType::i64}, {DType::i64})};
    }
    case Family::attention: {
      AttentionParams p, masked;
      p.scale = 0.3;
      masked = p;
      masked.mask = masked.lengths = true, masked.right = 0, masked.offset = 5000, masked.scores = ScoreOutput::softmax;
      return {of(p, {kF, kF, kF}), of(masked, {kF, kF, kF, DType::boolean, DType::i64}, {kF, kF}),
              of(masked, {kF, kF, kF, kF, DType::i64}, {kF, kF})};
    }
    case Family::triangle:
      return {of(TriangleParams{true, INT64_MIN}, {kF}), of(TriangleParams{false, 1}, {DType::i64}, {DType::i64})};
    case Family::rotary:
      return {of(RotaryParams{true}, {kF, kF, kF}), of(RotaryParams{false}, {kF, kF, kF}),
              of(RotaryParams{true}, {DType::f16, DType::f16, DType::f16}, {DType::f16})};
    case Family::scan:
      return {of(ScanParams{0, false, true}, {kF}), of(ScanParams{1, true, false}, {DType::f16}, {DType::f16}),
              of(ScanParams{1, true, false}, {DType::f64}, {DType::f64}),
              of(ScanParams{1, false, false}, {DType::i64}, {DType::i64}),
              of(ScanParams{1, false, false}, {DType::u8}, {DType::u8})};
    case Family::top_k:
      return {of(TopKParams{0, 7}, {kF}, {kF, DType::i64}), of(TopKParams{1, 1, false, true, true}, {kF}, {DType::i64}),
              of(TopKParams{0, 3}, {DType::i64}, {DType::i64, DType::i64}),
              of(TopKParams{0, 3, false}, {DType::u8}, {DType::u8, DType::i64}),
              of(TopKParams{0, 3, false}, {DType::f16}, {DType::f16, DType::i64})};
    case Family::scatter: {
      std::vector<Trial> list{of(ScatterParams{ScatterForm::one_hot, ScatterReduction::none, 1}, {DType::i64, kF})};
      for (const DType type : {kF, DType::f16, DType::i64, DType::u8})
        for (const ScatterForm form : {ScatterForm::elements, ScatterForm::tuples})
          for (const ScatterReduction reduction : {ScatterReduction::none, ScatterReduction::add, ScatterReduction::max})
            list.push_back(of(ScatterParams{form, reduction, static_cast<int>(list.size())}, {type, DType::i64, type}, {type}));
      return list;
    }
    case Family::non_max: {
      NonMaxParams corners, centers;
      corners.most = 1000, corners.overlap = 0.3, centers.overlap = 0.5;
      centers.centers = centers.has_threshold = true, centers.most = 10, centers.threshold = -7;
      return {of(corners, {kF, kF}, {DType::i64}), of(centers, {kF, kF}, {DType::i64})};
    }
    case Family::fft: {
      FftParams p;
      p.window.filter = {1, 15, 15}, p.window.pad_begin = p.window.pad_end = {0, 7, 7};
      return {of(p, {kF, kF})};
    }
    case Family::sample: {
      std::vector<Trial> list;
      for (const SampleMode mode : {SampleMode::nearest, SampleMode::linear, SampleMode::cubic})
        for (const SamplePadding padding : {SamplePadding::zeros, SamplePadding::border, SamplePadding::reflection})
          list.push_back(of(SampleParams{mode, padding, mode == SampleMode::linear}, {kF, kF}));
      return list;
    }
    case Family::deform: {
      DeformParams p, full;
      full.filter = {3, 3}, full.pad_begin = {1, 1}, full.groups = full.offset_groups = 2, full.bias = full.mask = true;
      return {of(p, {kF, kF, kF}), of(full, {kF, kF, kF, kF, kF})};
    }
    case Family::quantize: return {of(QuantizeParams{}, {kF, kF, DType::u8}, {DType::u8})};
    default: return {};
  }
}

// A schedule of the variant for one of the trial's stages, as a planner on this device finds it.
bool schedule_for(Trial& t, const Variant& variant, const Device& device) {
  Reason why = Reason::none;
  for (const Stage& stage : stages_of(t)) {
    const auto found = info(t.family()).schedules(stage, variant, device, why);
    if (found.empty()) continue;
    t.schedule = found.back();
    return true;
  }
  // Kernels that serve what a trial has, but are not worth it there.
  if (why != Reason::costlier) return false;
  t.schedule = LoopSchedule{std::string(variant.name), "fma-f32", 16};
  return true;
}

TEST(VulkanTrials, EveryVariantHasOneThatRuns) {
  SPARKLE_NEEDS_VULKAN(backend);
  // Variants whose units software devices have not; here they are only seen to have stages. Other types:
  // trial_elements_test.cc.
  const std::set<std::string> elsewhere{"gemm/cooperative", "gemm/cooperative_group", "gemm/dot_tile", "gemm/own_type"};
  int variants = 0, run = 0;
  for (int f = 0; f < kFamilies; ++f) {
    const FamilyInfo& family = info(static_cast<Family>(f));
    for (const Variant& v : family.variants) {
      if (v.device != DeviceKind::vulkan) continue;
      ++variants;
      const std::string name = std::string(family.name) + "/" + std::string(v.name);
      const auto trials = samples(static_cast<Family>(f));
      EXPECT_FALSE(trials.empty()) << name << " has no trial, and no reason why";
      int tried = 0;
      for (Trial t : trials) {
        t.schedule = LoopSchedule{std::string(v.name), "fma-f32", 0};
        EXPECT_FALSE(stages_of(t).empty()) << t.to_text();
        if (!schedule_for(t, v, backend->device())) continue;
        const auto before = backend->counters().submissions;
        const Status ran = run_trial(*backend, t, std::chrono::minutes(1));
        EXPECT_TRUE(ran.ok()) << t.to_text() << ": " << (ran.ok() ? "" : ran.error().message);
        tried += backend->counters().submissions > before;
      }
      EXPECT_TRUE(tried > 0 || elsewhere.count(name)) << name;
      run += tried;
    }
  }
  EXPECT_GT(variants, 30);
  std::printf("%d variants, %d trials\n", variants, run);
}

// What a trial demands of a sum, its activation must not take away.
TEST(VulkanTrials, ActivationsKeepNan) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (int i = 0; i <= static_cast<int>(Activation::mish); ++i) {
    Trial t = samples(Family::gemm)[0];
    Epilogue& e = std::get<GemmParams>(t.params).epilogue;
    e.activation = static_cast<Activation>(i), e.a = 0.25, e.b = 0.75;
    TileSchedule s;
    s.variant = "naive", s.unit = "fma-f32", s.m = 64;
    t.schedule = s;
    const Status ran = run_trial(*backend, t, std::chrono::minutes(1));
    EXPECT_TRUE(ran.ok()) << name_of(e.activation) << ": " << (ran.ok() ? "" : ran.error().message);
  }
}

// Kernels that do nothing fail the trials of families that move elements too.
TEST(VulkanTrials, MovesThatDoNothingAreFound) {
  ContextOptions options;
  options.cache = false;
  for (const Family family : {Family::pad, Family::gather, Family::attention}) {
    std::string why;
    Trial t = samples(family)[0];
    const std::string variant = family == Family::attention ? "blocks" : "units";
    t.schedule = LoopSchedule{variant, "fma-f32", 0};
    options.faults.nothing = std::string(name_of(family)) + "/" + variant;
    const auto backend = test_backend(options, why);
    if (!backend) GTEST_SKIP() << why;
    const Status tried = run_trial(*backend, t, std::chrono::minutes(1));
    ASSERT_FALSE(tried.ok()) << t.to_text();
    EXPECT_EQ(tried.error().reason, Reason::failed_probe);
  }
}

// The shader for matrix units on its stand-in, which is timed as any other: `late` makes it, or what it is compared with, take
// some milliseconds more.
struct Verdict {
  bool skipped = false;
  std::string banned;
  std::vector<std::string> findings, speeds;
};
Verdict verdict_with(const std::string& late) {
  const std::string folder = ::testing::TempDir() + "sparkle_speed_" + std::to_string(late.size());
  std::filesystem::create_directories(folder);
  ContextOptions options;
  options.cache_folder = folder;
  options.faults.late = late;
  Verdict v;
  Trial t;
  GemmParams p;
  p.loader = Loader::dense, p.halves = true;
  t.params = p;
  TileSchedule s;
  s.variant = "cooperative", s.unit = kEmulatedUnit;
  s.subgroup = 32, s.pad = kFragmentPad, s.k = 32, s.depth = 2;
  s.thread_m = s.m = 16, s.thread_n = s.n = 32;
  t.schedule = s;
  t.inputs = {DType::f32, DType::f32}, t.outputs = {DType::f32};
  std::string why;
  if (auto backend = test_backend(options, why); backend && backend->context().features().f16) {
    const Status tried = backend->try_lines(t.to_text() + "\n");
    EXPECT_TRUE(tried.ok()) << tried.error().message;
    // What was measured is known to the next process on this driver.
    options.faults = {};
    backend = test_backend(options, why);
    const auto before = backend->counters().submissions;
    EXPECT_TRUE(backend->try_lines(t.to_text() + "\n").ok());
    EXPECT_EQ(backend->counters().submissions, before);
    v.banned = backend->device().banned, v.findings = backend->findings(), v.speeds = backend->speeds();
  } else {
    v.skipped = true;
  }
  std::filesystem::remove_all(folder);
  return v;
}

TEST(VulkanTrials, MatrixUnitsThatAreSlowerAreBanned) {
  const Verdict v = verdict_with("gemm/cooperative");
  if (v.skipped) GTEST_SKIP() << "SKIP: no Vulkan device with 16-bit floats";
  EXPECT_EQ(v.banned, "gemm/cooperative");
  ASSERT_EQ(v.findings.size(), 1u);
  EXPECT_NE(v.findings[0].find("not worth it: takes"), std::string::npos) << v.findings[0];
  EXPECT_NE(v.findings[0].find("times as long as gemm/implicit"), std::string::npos) << v.findings[0];
  EXPECT_TRUE(v.speeds.empty());
  std::printf("%s\n", v.findings[0].c_str());
}

TEST(VulkanTrials, MatrixUnitsThatAreFasterAreKept) {
  const Verdict v = verdict_with("gemm/implicit");
  if (v.skipped) GTEST_SKIP() << "SKIP: no Vulkan device with 16-bit floats";
  EXPECT_EQ(v.banned, "");
  EXPECT_TRUE(v.findings.empty());
  ASSERT_EQ(v.speeds.size(), 1u);
  EXPECT_NE(v.speeds[0].find("gemm/cooperative takes 0."), std::string::npos) << v.speeds[0];
  std::printf("%s\n", v.speeds[0].c_str());
}

// Without a fault either may come, but one of them, and it is told.
TEST(VulkanTrials, MatrixUnitsAreTimedAsTheyAre) {
  const Verdict v = verdict_with("");
  if (v.skipped) GTEST_SKIP() << "SKIP: no Vulkan device with 16-bit floats";
  ASSERT_EQ(v.findings.size() + v.speeds.size(), 1u);
  EXPECT_EQ(v.banned, v.findings.empty() ? "" : "gemm/cooperative");
  std::printf("%s\n", (v.findings.empty() ? v.speeds : v.findings)[0].c_str());
}

TEST(VulkanTrials, OnlyMatrixUnitsAreTimed) {
  Trial t;
  t.params = GemmParams{};
  TileSchedule s;
  for (const Variant& v : info(Family::gemm).variants) {
    s.variant = v.name;
    t.schedule = s;
    EXPECT_EQ(needs_speed(t), v.unit == UnitKind::matrix) << v.name;
  }
  t.params = PoolParams{};
  EXPECT_FALSE(needs_speed(t));
}

}  // namespace
}  // namespace sparkle::vulkan
