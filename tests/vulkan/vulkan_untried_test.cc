// Kernels that no driver has run: everything that runs, compiles, times or tunes has them tried first and does without those
// that are wrong.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "backends/reference/reference_backend.h"
#include "backends/vulkan/vulkan_testing.h"
#include "base/folder_testing.h"
#include "device/memory_curve.h"
#include "graph/test_graphs.h"
#include "measure/layer_bench.h"
#include "measure/steps/optimisation_steps.h"
#include "measure/roofs/stream_bench.h"
#include "measure/tune_layers.h"
#include "prepare/compile_model.h"
#include "run/session_testing.h"

namespace sparkle {
namespace {

constexpr const char* kWrong = "implicit";

// On a device where the gemm family's kernel "implicit" computes nothing, and nothing is known of it yet.
class Untried : public testing::FolderTest {
 protected:
  void SetUp() override {
    testing::FolderTest::SetUp();
    vulkan::ContextOptions options;
    options.cache = false;
    std::string why;
    backend_ = vulkan::test_backend(options, why, {.nothing = std::string("gemm/") + kWrong});
    if (!backend_) GTEST_SKIP() << why;
    auto problem = parse_conv("ic32ih20oc64oh20kh3ph1");
    ASSERT_TRUE(problem.ok());
    problem_ = *problem;
    problem_.epilogue.bias = true, problem_.epilogue.activation = Activation::relu;
    options_.rounds = 1, options_.seconds_per_round = 1e-3;
    options_.plan.algorithm = "gemm";
    const auto planned = choose(call_of(problem_, backend_->device()), backend_->device(), options_.plan);
    ASSERT_TRUE(planned.ok());
    ASSERT_EQ(variant_of(planned->schedules[0]), kWrong) << "the planner would take another kernel first";
  }
  void expect_without(const Choice& choice) {
    EXPECT_TRUE(backend_->device().denies("gemm", kWrong));
    for (const Schedule& schedule : choice.schedules) EXPECT_NE(variant_of(schedule), kWrong);
  }

  std::shared_ptr<vulkan::VulkanBackend> backend_;
  Problem problem_;
  LayerBenchOptions options_;
};

TEST_F(Untried, CompiledModels) {
  testing::GraphBuilder b;
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  const Graph graph = b.done(b.op("Conv", conv, {b.input({1, 32, 20, 20}), b.weights({64, 32, 3, 3})}));
  SessionOptions options;
  options.algorithm = "gemm";
  const auto done = compile_model(graph, backend_, options, {graph.tensor(graph.inputs[0]).shape}, path("m.sparkle"));
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(backend_->device().denies("gemm", kWrong));
  auto model = CompiledModel::open(path("m.sparkle"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  // Caches are measured, as rates are: another time may find others.
  Device elsewhere = backend_->device();
  put_caches(elsewhere, std::array<CurveLevel, 2>{CurveLevel{double(1 << 22), 1e12}, CurveLevel{0, 1e11}});
  ASSERT_FALSE(elsewhere == backend_->device());
  EXPECT_TRUE((*model)->check_device(elsewhere).ok());
  auto session = Session::open(*model, backend_, {}), reference = Session::open(graph, make_reference_backend(), {});
  ASSERT_TRUE(session.ok() && reference.ok());
  const auto inputs = testing::random_inputs(**session);
  RunReport report;
  const auto got = (*session)->run(inputs, &report), wanted = (*reference)->run(inputs);
  ASSERT_TRUE(got.ok() && wanted.ok()) << (got.ok() ? "" : got.error().message);
  for (const PlanStep& step : report.plan->steps)
    EXPECT_FALSE(step.stage.family() == Family::gemm && variant_of(step.schedule) == kWrong) << step.name;
  for (int64_t i = 0; i < (*wanted)[0].elements(); ++i)
    ASSERT_NEAR((*got)[0].data<float>()[i], (*wanted)[0].data<float>()[i], 1e-4f) << i;
}

TEST_F(Untried, TimedLayers) {
  const auto measured = measure_layer(*backend_, problem_, options_);
  ASSERT_TRUE(measured.ok()) << measured.error().message;
  expect_without(measured->choice);
}

TEST_F(Untried, StreamedLayers) {
  const auto stream = measure_stream(*backend_, problem_, options_, 2);
  EXPECT_TRUE(stream.ok()) << stream.error().message;
  EXPECT_TRUE(backend_->device().denies("gemm", kWrong));
}

// A schedule of the caller's choosing is not tried: its output is checked, and what is wrong with it denies no variant.
TEST_F(Untried, ChosenCandidates) {
  const auto planned = choose(call_of(problem_, backend_->device()), backend_->device(), options_.plan);
  ASSERT_TRUE(planned.ok());
  const auto measured = measure_choice(*backend_, problem_, *planned, options_);
  ASSERT_FALSE(measured.ok());
  EXPECT_EQ(measured.error().reason, Reason::internal) << measured.error().message;
  EXPECT_FALSE(backend_->device().denies("gemm", kWrong));
}

TEST_F(Untried, OptimisationSteps) {
  const auto ladder = optimisation_steps_on(*backend_, problem_, {});
  ASSERT_TRUE(ladder.ok()) << ladder.error().message;
  bool found = false;
  for (const OptimisationStep& level : *ladder) {
    if (level.name == kWrong) {
      found = true;
      EXPECT_EQ(level.absent, "it failed its self-test on this driver");
    }
    if (level.absent.empty()) expect_without(level.choice);
  }
  EXPECT_TRUE(found);
}

TEST_F(Untried, TunedLayers) {
  TuningStore store(TuningStore::header_for(backend_->device()));
  TuneOptions tuning;
  tuning.plan = options_.plan;
  tuning.rule.most_seconds = 1;
  const auto tuned = tune_anchor(*backend_, anchor_of("", problem_, backend_->device()), tuning, store);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message;
  ASSERT_FALSE(tuned->candidates.empty());
  for (const Choice& candidate : tuned->candidates) expect_without(candidate);
}

}  // namespace
}  // namespace sparkle
