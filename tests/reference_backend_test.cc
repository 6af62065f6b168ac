// A backend from outside of the library (tests/reference_backend): registered in one line, it runs whole networks through
// sessions and gives the numbers of the CPU.
#include "reference_backend/loops_backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/self_tests/sample_run.h"
#include "families/registry.h"
#include "networks/zoo.h"
#include "onnx/reader.h"
#include "plan/choose/choose.h"
#include "run/session_testing.h"

namespace sparkle {
namespace {

class NewBackend : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { add_backend(testing::kLoopsBackend); }

  static std::shared_ptr<Backend> opened(const std::string& name) {
    BackendOptions options;
    options.name = name;
    auto open = open_backend(options);
    EXPECT_TRUE(open.ok()) << (open.ok() ? "" : open.error().message);
    return open.ok() ? open->backend : nullptr;
  }

  static void expect_same(const Graph& graph, const std::vector<HostTensor>& inputs, const std::string& what) {
    auto cpu = Session::open(graph, opened("cpu"), {}), loops = Session::open(graph, opened("loops"), {});
    ASSERT_TRUE(cpu.ok() && loops.ok()) << what;
    const auto given = inputs.empty() ? testing::random_inputs(**cpu) : inputs;
    const auto wanted = (*cpu)->run(given);
    RunReport report;
    const auto got = (*loops)->run(given, &report, true);
    ASSERT_TRUE(wanted.ok() && got.ok()) << what << (got.ok() ? "" : ": " + got.error().message);
    for (const PlanStep& step : report.plan->steps) EXPECT_EQ(variant_of(step.schedule), "plain") << what;
    for (size_t o = 0; o < wanted->size(); ++o) {
      const HostTensor &a = (*got)[o], &b = (*wanted)[o];
      ASSERT_EQ(a.shape, b.shape) << what;
      float largest = 1e-20f;
      for (int64_t i = 0; i < b.elements(); ++i) largest = std::max(largest, std::abs(b.data<float>()[i]));
      for (int64_t i = 0; i < b.elements(); ++i)
        ASSERT_LE(std::abs(a.data<float>()[i] - b.data<float>()[i]), 1e-5f * largest) << what << " at " << i;
    }
  }
};

TEST_F(NewBackend, IsFoundByItsName) {
  EXPECT_EQ(opened("loops")->device().name, "plain loops");
  BackendOptions options;
  for (const char* name : {"loop", "loops:0", "cpu:0", "auto:0"}) {
    options.name = name;
    const auto none = open_backend(options);
    ASSERT_FALSE(none.ok()) << name;
    EXPECT_EQ(none.error().reason, Reason::bad_usage);
    EXPECT_NE(none.error().message.find("reference, loops, or FILE.json"), std::string::npos) << none.error().message;
  }
}

TEST_F(NewBackend, RunsTheDemoNetwork) {
  auto graph = read_onnx(SPARKLE_SOURCE_DIR "/models/upscale2x.onnx");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  expect_same(*graph, {testing::random_tensor(DType::f32, {1, 3, 9, 13}, 3)}, "upscale2x");
}

TEST_F(NewBackend, RunsSeededNetworks) {
  for (const char* name : {"tiny_chain", "tiny_residual", "tiny_depthwise", "tiny_unet", "tiny_detector", "tiny_attention"}) {
    auto graph = zoo_network(name);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    expect_same(*graph, {}, name);
  }
}

// All families, by the stages with which kernels are tried.
TEST_F(NewBackend, RunsTheSamplesOfEveryFamily) {
  const auto backend = opened("loops");
  for (int f = 0; f < kFamilies; ++f) {
    const FamilyInfo& family = info(static_cast<Family>(f));
    int ran = 0;
    for (const SampleForm& form : family.sample_forms())
      for (const Stage& stage : family.samples({form.params, LoopSchedule{}, form.inputs, form.outputs})) {
        const Status right = run_sample(*backend, stage, LoopSchedule{}, 0, {});
        EXPECT_TRUE(right.ok()) << family.name << " " << to_text(form.params) << ": "
                                << (right.ok() ? "" : right.error().message);
        ++ran;
      }
    EXPECT_GT(ran, 0) << family.name;
  }
}

}  // namespace
}  // namespace sparkle
