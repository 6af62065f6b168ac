// Every optimisation step and every row of the ablation computes the same as the reference: random shapes, odd sizes, strides,
// padding.
#include "measure/steps/optimisation_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/device_json.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "families/values/epilogue.h"
#include "measure/head_to_head.h"
#include "measure/choice_errors.h"

namespace sparkle {
namespace {

std::shared_ptr<Backend> backend_here() {
  Device device = probe_cpu({.threads = 2});
  estimate_rates(device);
  if (!best_vector_unit(device)) return nullptr;
  return cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(2));
}

Problem random_convolution(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::to_string(std::uniform_int_distribution<int>(low, high)(random)); };
  auto p = parse_conv("mb" + pick(1, 2) + "ic" + pick(1, 40) + "ih" + pick(9, 20) + "iw" + pick(9, 20) + "oc" + pick(1, 70) +
                      "kh" + pick(1, 4) + "kw" + pick(1, 4) + "sh" + pick(1, 3) + "sw" + pick(1, 2) + "dh" + pick(0, 1) + "dw" +
                      pick(0, 1) + "ph" + pick(0, 2) + "pw" + pick(0, 2));
  EXPECT_TRUE(p.ok());
  p->epilogue.bias = true, p->epilogue.activation = Activation::relu;
  return *p;
}

// A GPU's optimisation steps are the variants of the gemm family for it, then the other algorithms.
TEST(Steps, OfAGpuAreItsVariants) {
  const auto device = load_device(SPARKLE_SOURCE_DIR "/devices/radeon-rx-7900-xtx.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto problem = parse_conv("ic64ih56oc64oh56kh3ph1");
  ASSERT_TRUE(problem.ok());
  const auto steps = optimisation_steps_of(*problem, *device, PlanOptions{});
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  for (const char* name :
       {"unrolled", "naive", "groups", "halo", "fours", "several", "implicit", "cooperative", "winograd2", "winograd4"}) {
    const auto at = std::find_if(steps->begin(), steps->end(), [&](const OptimisationStep& l) { return l.name == name; });
    ASSERT_NE(at, steps->end()) << name;
    EXPECT_EQ(at->absent, "") << name;
    EXPECT_FALSE(at->one_core);
  }
  for (const OptimisationStep& step : *steps) EXPECT_TRUE(!step.absent.empty() || !step.choice.without_kernel) << step.name;
}

// Each step of CUDA stands behind what it is compared with: the gemm family's table has them in this order.
TEST(Steps, OfACudaDeviceAreInTheirOrder) {
  const auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  struct Case {
    const char *layer, *dtype;
    bool planes;
    double accuracy;
    std::vector<std::string> steps;  // that the layer has
  };
  const Case cases[] = {
      {"mb32ic64ih56oc64oh56kh3ph1",
       "bf16",
       false,
       0,
       {"unrolled", "one_output", "fma_widened", "mma_in_turn", "mma", "wgmma", "wgmma_pairs", "wgmma_halo", "as planned"}},
      {"mb32ic64ih56oc64oh56kh3ph1",
       "f32",
       false,
       0,
       {"unrolled", "one_output", "fma_in_turn", "fma", "wmma", "mma_in_turn", "mma", "wgmma", "wgmma_pairs", "wgmma_halo",
        "as planned"}},
      {"mb100ic4ih40oc16oh34kh7ph0",
       "f32",
       true,
       1e-3,
       {"unrolled", "one_output", "fma_elements", "wmma", "mma_elements", "few", "as planned"}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.layer) + " " + c.dtype);
    auto problem = parse_conv(c.layer);
    ASSERT_TRUE(problem.ok());
    problem->dtype = c.dtype;
    PlanOptions options;
    options.accuracy = c.accuracy;
    const auto steps = optimisation_steps_of(*problem, *device, options, c.planes);
    ASSERT_TRUE(steps.ok()) << steps.error().message;
    std::vector<std::string> present;
    for (const OptimisationStep& step : *steps)
      if (step.absent.empty()) present.push_back(step.name);
    EXPECT_EQ(present, c.steps);
  }
}

// The product by tiles on maps in the other order stands before the one on channels last, and behind the one on planes, so that
// each row's factor is what the order of the faster one brings.
TEST(Steps, OfAGpuHaveBothOrdersOfAMap) {
  const auto device = load_device(SPARKLE_SOURCE_DIR "/devices/radeon-rx-7900-xtx.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto problem = parse_conv("ic64ih56oc64oh56kh3ph1");
  ASSERT_TRUE(problem.ok());
  for (const bool planes : {false, true}) {
    const auto steps = optimisation_steps_of(*problem, *device, PlanOptions{}, planes);
    ASSERT_TRUE(steps.ok()) << steps.error().message;
    const auto implicit = std::ranges::find(*steps, "implicit", &OptimisationStep::name);
    ASSERT_TRUE(implicit != steps->begin() && implicit + 1 < steps->end());
    const OptimisationStep& other = planes ? implicit[1] : implicit[-1];
    EXPECT_EQ(other.name, planes ? "NHWC" : "NCHW");
    EXPECT_EQ(other.absent, "");
    for (const OptimisationStep& step : *steps) EXPECT_EQ(step.other_layout, &step == &other) << step.name;
    const auto between_channels = [](const OptimisationStep& s) {
      return s.choice.plan.stages.at(0).stage.inputs[0].layout.strides[1];
    };
    EXPECT_EQ(between_channels(other), planes ? 1 : 56 * 56);
    EXPECT_EQ(between_channels(*implicit), planes ? 56 * 56 : 1);
  }
  const auto product = parse_gemm("64x128x32");
  ASSERT_TRUE(product.ok());
  const auto steps = optimisation_steps_of(*product, *device, PlanOptions{});
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  const auto absent = std::ranges::find(*steps, "NCHW", &OptimisationStep::name);
  ASSERT_NE(absent, steps->end());
  EXPECT_EQ(absent->absent, "a product of two matrices has no feature maps");
}

TEST(Steps, AllComputeTheSame) {
  const auto backend = backend_here();
  if (!backend) GTEST_SKIP() << "no vector unit here";
  LayerBenchOptions options;
  options.rounds = 1, options.seconds_per_round = 0;
  std::mt19937 random(7);
#if defined(SPARKLE_TESTS_EMULATED)
  constexpr int kCases = 4;
#else
  constexpr int kCases = 25;
#endif
  for (int i = 0; i < kCases; ++i) {
    const Problem problem = random_convolution(random);
    SCOPED_TRACE("case " + std::to_string(i) + " of seed 7: " + short_name(problem));
    const auto ladder = optimisation_steps_of(problem, backend->device(), {}),
               ablation = ablation_of(problem, backend->device(), {});
    ASSERT_TRUE(ladder.ok() && ablation.ok());
    for (const auto* steps : {&*ladder, &*ablation})
      for (const OptimisationStep& step : *steps) {
        if (!step.absent.empty()) continue;
        SCOPED_TRACE(step.name);
        options.seed = static_cast<uint64_t>(i + 1);
        const auto measured = measure_choice(*backend, problem, step.choice, options);
        ASSERT_TRUE(measured.ok()) << measured.error().message;
        EXPECT_TRUE(measured->checked.whole() && measured->checked.times == 2) << to_text(measured->checked);
        const double length = static_cast<double>(problem.c * problem.window.taps());
        EXPECT_LE(measured->largest_error,
                  std::max(1.2e-7 * (8 + 2 * std::sqrt(length)), bound_on_random(step.choice, problem)));
      }
  }
}

TEST(Steps, SayWhyOneIsAbsent) {
  const auto backend = backend_here();
  if (!backend) GTEST_SKIP() << "no vector unit here";
  auto grouped = parse_conv("g4ic16ih8oc16kh3ph1");
  ASSERT_TRUE(grouped.ok());
  const auto ladder = optimisation_steps_of(*grouped, backend->device(), {});
  ASSERT_TRUE(ladder.ok());
  const auto tiled = std::ranges::find(*ladder, "register-tiled", &OptimisationStep::name);
  ASSERT_NE(tiled, ladder->end());
  EXPECT_EQ(tiled->absent, "im2col is shown for convolutions of two dimensions without groups");
  const auto ablation = ablation_of(*grouped, backend->device(), {});
  ASSERT_TRUE(ablation.ok());
  EXPECT_EQ(ablation->back().absent, "this problem has nothing to fuse");
}

// Counts its calls and can be made to compute wrongly.
class Copycat final : public Peer {
 public:
  explicit Copycat(bool right) : right_(right) {}
  std::string name() const override { return "copycat"; }
  std::string version() const override { return "1"; }
  Result<std::unique_ptr<PeerRun>> prepare(const PeerLayer& layer) override {
    if (layer.call.problem.groups > 1) return Error{Reason::operator_not_served, "no groups"};
    struct Run final : PeerRun {
      Status run(int64_t) override { return ok(); }
      Status result(float* y) override {
        std::copy(values.begin(), values.end(), y);
        return ok();
      }
      std::vector<float> values;
    };
    auto run = std::make_unique<Run>();
    // 1x1 filters of one channel: y = w * x + bias, pixel by pixel.
    const Problem& p = layer.call.problem;
    for (int64_t pixel = 0; pixel < p.in[1] * p.in[2]; ++pixel)
      for (int64_t k = 0; k < p.k; ++k) run->values.push_back(layer.w[k] * layer.x[pixel] + layer.bias[k] * (right_ ? 1 : 2));
    return std::unique_ptr<PeerRun>(std::move(run));
  }

 private:
  bool right_;
};

TEST(HeadToHead, VerifiesPeersAndKeepsTheirRefusals) {
  const auto backend = backend_here();
  if (!backend) GTEST_SKIP() << "no vector unit here";
  LayerBenchOptions options;
  options.rounds = 1, options.seconds_per_round = 0;
  auto problem = parse_conv("ic1ih5oc3kh1"), groups = parse_conv("g2ic2ih5oc4kh1");
  ASSERT_TRUE(problem.ok() && groups.ok());
  problem->epilogue.bias = groups->epilogue.bias = true;
  std::vector<std::unique_ptr<Peer>> right, wrong;
  right.push_back(std::make_unique<Copycat>(true)), wrong.push_back(std::make_unique<Copycat>(false));
  const auto good = head_to_head(*backend, *problem, options, right);
  ASSERT_TRUE(good.ok()) << good.error().message;
  EXPECT_LT(good->peers[0].largest_error, 1e-6);
  EXPECT_GT(good->peers[0].speedup, 0);
  EXPECT_EQ(good->best_speedup, good->peers[0].speedup);
  const auto refused = head_to_head(*backend, *groups, options, right);
  ASSERT_TRUE(refused.ok()) << refused.error().message;
  EXPECT_EQ(refused->peers[0].refused, "no groups");
  EXPECT_EQ(refused->best_speedup, 0);
  const auto bad = head_to_head(*backend, *problem, options, wrong);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("copycat computes"), std::string::npos) << bad.error().message;
}

}  // namespace
}  // namespace sparkle
