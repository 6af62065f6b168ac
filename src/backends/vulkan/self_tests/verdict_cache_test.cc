// Kernels that give wrong results, take seconds or end the process are found before anything relies on them.
#include <filesystem>
#include <fstream>

#include "backends/self_tests/verdict_cache.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/copy/copy.h"
#include "families/fft/fft.h"
#include "families/gemm/gemm.h"
#include "families/quantize/quantize.h"
#include "families/registry.h"
#include "families/resize/resize.h"

namespace sparkle::vulkan {
namespace {

// A 1x1 convolution as a plan would have it on this device, by the variant.
struct Step {
  Stage stage;
  Schedule schedule;
};
Step step_of(const Device& device, const std::string& variant) {
  GemmParams p;
  p.loader = Loader::dense;
  Step step;
  step.stage.params = p;
  step.stage.inputs = {dense_desc(DType::f32, {4, 8}), dense_desc(DType::f32, {8, 4})};
  step.stage.outputs = {dense_desc(DType::f32, {4, 4})};
  for (const Variant& v : info(Family::gemm).variants) {
    Reason why = Reason::none;
    if (v.name == variant) step.schedule = info(Family::gemm).schedules(step.stage, v, device, why).back();
  }
  return step;
}
Status try_out(VulkanBackend& backend, const Step& step) {
  const ScheduledStage one{&step.stage, &step.schedule};
  return backend.try_out({&one, 1});
}

class VulkanVerdictCache : public ::testing::Test {
 protected:
  void SetUp() override {
    // Not by process: the child of a death test is one of its own.
    folder_ = ::testing::TempDir() + "sparkle_trust_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    options_.cache_folder = folder_;
    if (!open()) GTEST_SKIP() << why_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  bool open() {
    backend_ = test_backend(options_, why_, faults_);
    return backend_ != nullptr;
  }
  std::string folder_, why_;
  ContextOptions options_;
  Faults faults_;
  std::shared_ptr<VulkanBackend> backend_;
};

TEST_F(VulkanVerdictCache, GoodKernelsAreTriedOnce) {
  const Step step = step_of(backend_->device(), "naive");
  ASSERT_TRUE(try_out(*backend_, step).ok());
  const auto before = backend_->counters().submissions;
  EXPECT_GT(before, 0u);
  ASSERT_TRUE(try_out(*backend_, step).ok());
  EXPECT_EQ(backend_->counters().submissions, before);
  // Nor by the next process on this driver.
  ASSERT_TRUE(open());
  ASSERT_TRUE(try_out(*backend_, step).ok());
  EXPECT_EQ(backend_->counters().submissions, 0u);
}

TEST_F(VulkanVerdictCache, WrongKernelsAreDenied) {
  faults_.nothing = "gemm/implicit";
  ASSERT_TRUE(open());
  const Step step = step_of(backend_->device(), "implicit");
  const Status tried = try_out(*backend_, step);
  ASSERT_FALSE(tried.ok());
  EXPECT_EQ(tried.error().reason, Reason::failed_probe);
  EXPECT_NE(tried.error().message.find("wrong"), std::string::npos) << tried.error().message;
  EXPECT_TRUE(backend_->device().denies("gemm", "implicit"));
  EXPECT_FALSE(backend_->device().denies("gemm", "naive"));
  EXPECT_TRUE(try_out(*backend_, step_of(backend_->device(), "naive")).ok());
  // The denial is kept, whatever the next process would find.
  faults_ = {};
  ASSERT_TRUE(open());
  EXPECT_TRUE(backend_->device().denies("gemm", "implicit"));
  EXPECT_EQ(backend_->findings().size(), 1u);
}

TEST_F(VulkanVerdictCache, SlowKernelsAreDenied) {
  faults_.slow = "gemm/naive";
  options_.try_timeout = std::chrono::milliseconds(30);
  ASSERT_TRUE(open());
  const Status tried = try_out(*backend_, step_of(backend_->device(), "naive"));
  ASSERT_FALSE(tried.ok());
  EXPECT_EQ(tried.error().reason, Reason::failed_probe);
  EXPECT_NE(tried.error().message.find("slow"), std::string::npos) << tried.error().message;
}

// What comes next would wait behind it.
TEST_F(VulkanVerdictCache, AfterASlowKernelTheOthersAreTried) {
  faults_.slow = "gemm/implicit";
  options_.try_timeout = std::chrono::milliseconds(30);
  ASSERT_TRUE(open());
  const Step slow = step_of(backend_->device(), "implicit");
  EXPECT_FALSE(try_out(*backend_, slow).ok());
  EXPECT_FALSE(backend_->lost());
  const Step next = step_of(backend_->device(), "naive");
  const Status tried = try_out(*backend_, next);
  EXPECT_TRUE(tried.ok()) << tried.error().message;
  EXPECT_EQ(backend_->device().denylist, "gemm/implicit");
}

// A kernel that does not end: neither the next self-test nor closing the device waits for it.
TEST_F(VulkanVerdictCache, DevicesThatDoNotComeBackAreGivenUp) {
  faults_.slow = "gemm/naive";
  options_.try_timeout = options_.give_up_after = std::chrono::milliseconds(1);
  ASSERT_TRUE(open());
  const Status tried = try_out(*backend_, step_of(backend_->device(), "naive"));
  ASSERT_FALSE(tried.ok());
  EXPECT_EQ(tried.error().reason, Reason::device_lost);
  EXPECT_TRUE(backend_->lost());
  options_ = {}, faults_ = {};
  options_.cache_folder = folder_;
  ASSERT_TRUE(open());
  EXPECT_EQ(backend_->device().denylist, "gemm/naive");
  EXPECT_TRUE(try_out(*backend_, step_of(backend_->device(), "implicit")).ok());
}

// A device that is lost tells nothing of what would have been tried after that, and of what was tried little.
TEST_F(VulkanVerdictCache, ALostDeviceDeniesNoOther) {
  options_.sandbox = true;
  faults_.lost_at_submit = 3;
  ASSERT_TRUE(open());
  for (const char* variant : {"naive", "implicit"}) {
    const Status tried = try_out(*backend_, step_of(backend_->device(), variant));
    ASSERT_FALSE(tried.ok());
    EXPECT_EQ(tried.error().reason, Reason::device_lost);
  }
  EXPECT_EQ(backend_->device().denylist, "");
  faults_ = {};
  ASSERT_TRUE(open());
  EXPECT_EQ(backend_->device().denylist, "");
  EXPECT_TRUE(try_out(*backend_, step_of(backend_->device(), "naive")).ok());
}

// What measures rates runs before any kernel was tried.
TEST_F(VulkanVerdictCache, RatesAreNotMeasuredWhereThatHasLostTheDevice) {
  faults_.lost_at_submit = 1;
  ASSERT_TRUE(open());
  const Status lost = backend_->calibrate();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().reason, Reason::device_lost);
  faults_ = {};
  ASSERT_TRUE(open());
  const Status refused = backend_->calibrate();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::device_unusable);
  EXPECT_EQ(backend_->counters().submissions, 0u);
  ASSERT_EQ(backend_->findings().size(), 1u);
  EXPECT_TRUE(backend_->findings()[0].starts_with("roofs/rates: ")) << backend_->findings()[0];
  options_.sandbox = true;  // once more, and it is for good
  faults_.lost_at_submit = 1;
  ASSERT_TRUE(open());
  EXPECT_EQ(backend_->calibrate().error().reason, Reason::device_lost);
  ASSERT_TRUE(open());
  EXPECT_EQ(backend_->calibrate().error().reason, Reason::device_unusable);
}

class VulkanVerdictCacheInterrupted : public VulkanVerdictCache {
 protected:
  // A process that ends as it tries gemm/naive.
  void crash() {
    backend_.reset();
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // a new process: what a driver holds does not survive a fork
    faults_.crash = "gemm/naive";
    EXPECT_EXIT(
        {
          open();
          const Status tried = try_out(*backend_, step_of(backend_->device(), "naive"));
          std::exit(tried.ok() ? 0 : 1);
        },
        ::testing::KilledBySignal(SIGABRT), "");
    faults_.crash = "";
  }
};

TEST_F(VulkanVerdictCacheInterrupted, WhatEndedAProcessIsDeniedInTheNext) {
  crash();
  for (int processes = 0; processes < 2; ++processes) {  // the marker is gone after the first, the verdict stays
    ASSERT_TRUE(open());
    EXPECT_TRUE(backend_->device().denies("gemm", "naive"));
    EXPECT_FALSE(backend_->device().denies("gemm", "implicit"));
    ASSERT_EQ(backend_->findings().size(), 1u);
    EXPECT_NE(backend_->findings()[0].find("ended"), std::string::npos);
    const Status tried = try_out(*backend_, step_of(backend_->device(), "naive"));
    ASSERT_FALSE(tried.ok());
    EXPECT_EQ(tried.error().reason, Reason::failed_probe);
    EXPECT_EQ(backend_->counters().submissions, 0u);
  }
}

// Somebody may have killed the process.
TEST_F(VulkanVerdictCacheInterrupted, ASandboxProcessTriesItOnceMore) {
  crash();
  int asked = 0;
  options_.try_elsewhere = [&](const std::string& lines) {
    ++asked;
    ContextOptions there = options_;
    there.try_elsewhere = nullptr, there.sandbox = true;
    std::string why;
    const auto other = test_backend(there, why);
    ASSERT_NE(other, nullptr) << why;
    EXPECT_EQ(other->device().denylist, "");
    EXPECT_TRUE(other->try_lines(lines).ok());
  };
  ASSERT_TRUE(open());
  EXPECT_EQ(backend_->device().denylist, "");
  EXPECT_TRUE(try_out(*backend_, step_of(backend_->device(), "naive")).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(backend_->counters().submissions, 0u);
  options_.try_elsewhere = nullptr;  // and whoever comes next knows
  ASSERT_TRUE(open());
  EXPECT_EQ(backend_->device().denylist, "");
}

TEST_F(VulkanVerdictCacheInterrupted, WhereNobodyTriesItAgainItStaysDenied) {
  crash();
  options_.try_elsewhere = [](const std::string&) {};
  ASSERT_TRUE(open());
  EXPECT_FALSE(try_out(*backend_, step_of(backend_->device(), "naive")).ok());
  EXPECT_TRUE(backend_->device().denies("gemm", "naive"));
  EXPECT_EQ(backend_->counters().submissions, 0u);
}

TEST_F(VulkanVerdictCacheInterrupted, WhatEndedTwoProcessesIsDeniedForGood) {
  crash();
  options_.sandbox = true;
  crash();
  ASSERT_TRUE(open());
  EXPECT_TRUE(backend_->device().denies("gemm", "naive"));
  ASSERT_EQ(backend_->findings().size(), 1u);
  EXPECT_NE(backend_->findings()[0].find("two processes"), std::string::npos);
}

TEST_F(VulkanVerdictCache, ElsewhereIsAskedFirst) {
  std::string asked;
  options_.try_elsewhere = [&](const std::string& lines) {
    asked = lines;
    ContextOptions there = options_;
    there.try_elsewhere = nullptr;
    std::string why;
    const auto other = test_backend(there, why, {.nothing = "gemm/naive"});
    ASSERT_NE(other, nullptr) << why;
    EXPECT_TRUE(other->try_lines(lines).ok());
  };
  ASSERT_TRUE(open());
  const Status tried = try_out(*backend_, step_of(backend_->device(), "naive"));
  EXPECT_EQ(std::count(asked.begin(), asked.end(), '\n'), 1);
  ASSERT_FALSE(tried.ok());
  EXPECT_TRUE(backend_->device().denies("gemm", "naive"));
  EXPECT_EQ(backend_->counters().submissions, 0u);
}

TEST_F(VulkanVerdictCache, BrokenRecordsAreNoRecords) {
  ASSERT_TRUE(try_out(*backend_, step_of(backend_->device(), "naive")).ok());
  backend_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    std::ofstream(entry.path()) << "x\ny z\n" << std::string(9000, 'q');
  ASSERT_TRUE(open());
  EXPECT_EQ(backend_->device().denylist, "");
  EXPECT_TRUE(try_out(*backend_, step_of(backend_->device(), "naive")).ok());
}

// Stages on 8-bit integers are tried like others, with zero points.
TEST(VulkanSelfTest, IntegersAreTried) {
  SPARKLE_NEEDS_VULKAN(backend);
  SelfTest t;
  GemmParams p;
  p.loader = Loader::dense;
  p.epilogue.scale = true;
  t.params = p;
  TileSchedule schedule;
  schedule.variant = "bytes_naive";
  t.schedule = schedule;
  t.inputs = {DType::u8, DType::i8, DType::f32, DType::u8, DType::i8, DType::i8};
  t.outputs = {DType::i8};
  EXPECT_EQ(stages_of(t).size(), 2u);
  const Status ran = run_self_test(*backend, t, std::chrono::seconds(60));
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  SelfTest quantize;
  quantize.params = QuantizeParams{};
  quantize.schedule = LoopSchedule{"elements", "fma-f32", 0};
  quantize.inputs = {DType::f32, DType::f32, DType::u8};
  quantize.outputs = {DType::u8};
  EXPECT_EQ(stages_of(quantize).size(), 2u);
  const Status quantized = run_self_test(*backend, quantize, std::chrono::seconds(60));
  EXPECT_TRUE(quantized.ok()) << quantized.error().message;
}

TEST_F(VulkanVerdictCache, MovesAndFiltersAreTriedToo) {
  ResizeParams cubic;
  cubic.mode = ResizeMode::cubic;
  cubic.scales = {1, 1, 2, 0.5};
  const SelfTest self_tests[] = {{LoopSchedule{"units", "fma-f32", 0}, CopyParams{}, {DType::f32}, {DType::f32}},
                                 {LoopSchedule{"transpose", "fma-f32", 0}, CopyParams{}, {DType::f32}, {DType::f32}},
                                 {LoopSchedule{"taps", "fma-f32", 0}, cubic, {DType::f32}, {DType::f32}}};
  for (const SelfTest& self_test : self_tests) {
    const auto before = backend_->counters().submissions;
    const Status tried = run_self_test(*backend_, self_test, std::chrono::minutes(1));
    EXPECT_TRUE(tried.ok()) << self_test.to_text() << ": " << (tried.ok() ? "" : tried.error().message);
    EXPECT_EQ(backend_->counters().submissions, before + 4) << self_test.to_text();
  }
}

// A filter for each channel, and sums over the channels of groups, by transforms.
TEST(VulkanSelfTest, TransformsAreTried) {
  SPARKLE_NEEDS_VULKAN(backend);
  FftParams p;
  p.window.filter = {1, 7, 5};
  p.window.pad_begin = {0, 3, 2};
  p.window.stride = {1, 2, 1};
  p.groups = 24;
  p.epilogue.bias = true, p.epilogue.activation = Activation::relu;
  FftTileSchedule schedule{"whole", "fma-f32", 12, 10, 2, 64, {}};
  schedule.product = {"implicit", "fma-f32", 32, 32, 16, 4, 4, 0, 2, 1, 4, 1};
  const auto try_one = [&](const char* variant, DType type, const FftParams& params) {
    schedule.variant = variant;
    const auto inputs = static_cast<size_t>(2 + params.epilogue.operands());
    const SelfTest t{schedule, params, std::vector<DType>(inputs, type), {type}};
    const auto back = SelfTest::from_text(t.to_text());
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->to_text(), t.to_text());
    EXPECT_EQ(stages_of(t).size(), 2u);
    const auto before = backend->counters().submissions;
    const Status ran = run_self_test(*backend, t, std::chrono::minutes(1));
    EXPECT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(backend->counters().submissions, before + 8);  // filters as they are and packed, twice each
  };
  FftParams with_post_op = p;
  with_post_op.epilogue.post_op = {2, {{PointwiseOp::prelu, 0, 1, 0, 0, 0}}};
  for (const char* variant : {"whole", "points"}) {
    try_one(variant, DType::f32, p);
    try_one(variant, DType::f32, with_post_op);
    if (backend->context().features().f16) try_one(variant, DType::f16, p);
  }
  // Of a map of 7x7 under a filter of 31x31.
  p.window.filter = {1, 31, 31}, p.window.pad_begin = {0, 15, 15}, p.window.stride = {1, 1, 1};
  schedule.variant = "whole", schedule.rows = 15, schedule.columns = 15;
  for (const Stage& stage : stages_of({schedule, p, std::vector<DType>(3, DType::f32), {DType::f32}}))
    EXPECT_TRUE(backend->compile(stage, schedule, 2).ok());
}
TEST_F(VulkanVerdictCache, WrongTransformsAreFound) {
  faults_.nothing = "fft/whole";
  ASSERT_TRUE(open());
  FftParams p;
  p.window.filter = {1, 7, 5};
  const SelfTest t{FftTileSchedule{"whole", "fma-f32", 12, 10, 2, 64, {}}, p, std::vector<DType>(2, DType::f32), {DType::f32}};
  EXPECT_FALSE(run_self_test(*backend_, t, std::chrono::minutes(1)).ok());
}

TEST(VulkanSelfTest, TextsReadBack) {
  SelfTest t;
  t.schedule = TileSchedule{};
  t.params = GemmParams{};
  t.inputs = {DType::f32, DType::i8};
  t.outputs = {DType::f32};
  const auto back = SelfTest::from_text(t.to_text());
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->to_text(), t.to_text());
  EXPECT_FALSE(SelfTest::from_text("gemm").ok());
  EXPECT_FALSE(SelfTest::from_text("gemm\t\t\t\t").ok());
}

}  // namespace
}  // namespace sparkle::vulkan
