// Plans whose device lacks kernels: what lies between the host's steps goes there where that makes the plan cheaper, and never
// makes it dearer; of all assignments none is cheaper. What is not between two of them stays.
#include "plan/memory/host_moves.h"

#include <gtest/gtest.h>

#include "families/registry.h"
#include "plan/explain.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

using testing::GraphBuilder;

// The machine's CPU as a device that lacks some families, `faster` than the host, behind a link.
Device lacking(const std::vector<Family>& families, double faster, double link_seconds) {
  Device device = testing::device_named("epyc-zen4");
  device.name = "a device without some kernels";
  for (const Family family : families)
    for (const Variant& variant : info(family).variants)
      device.denylist += (device.denylist.empty() ? "" : " ") + std::string(name_of(family)) + "/" + std::string(variant.name);
  for (MathUnit& unit : device.units) unit.flops_per_second *= faster, unit.total_flops_per_second *= faster;
  for (MemoryLevel& level : device.memory) {
    level.bytes_per_second *= faster, level.total_bytes_per_second *= faster, level.copy_bytes_per_second *= faster;
  }
  device.link_bytes_per_second = 10e9, device.link_seconds = link_seconds;
  return device;
}

Result<Plan> plan_on(const Graph& graph, const Device& device, const std::vector<size_t>* moves = nullptr,
                     bool with_host = true) {
  const Device host = testing::device_named("epyc-zen4");
  PlanOptions options;
  options.fuse = false;
  options.host_device = with_host ? &host : nullptr;
  options.host_moves = moves;
  return make_plan(graph, device, options);
}

size_t count(const Plan& plan, Reason reason) {
  return static_cast<size_t>(
      std::count_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& s) { return s.host_reason == reason; }));
}

// Softmax - `middle` cheap steps - softmax, a product before and behind.
Graph chain(int middle, int64_t rows) {
  GraphBuilder b;
  TensorId x = b.op("MatMul", MatMulOp{}, {b.input({rows, 32}), b.weights({32, 16})});
  x = b.op("Softmax", SoftmaxOp{-1}, {x});
  for (int i = 0; i < middle; ++i) x = b.pointwise(PointwiseOp::abs, {x});
  x = b.op("Softmax", SoftmaxOp{-1}, {x});
  return std::move(*testing::ready(b.done(b.op("MatMul", MatMulOp{}, {x, b.weights({16, 8})}))));
}

// Branches of cheap steps between some that the device lacks: reductions, softmaxes, parts of a whole and a concatenation.
Graph random_net(std::mt19937_64& random, int steps) {
  GraphBuilder b;
  const int64_t rows = int64_t{1} << (random() % 12);
  std::vector<TensorId> have{b.input({rows, 24})};
  if (random() % 2) have.push_back(b.input({rows, 24}));
  const auto any = [&] { return have[have.size() - 1 - random() % std::min<size_t>(3, have.size())]; };
  for (int i = 0; i < steps; ++i) {
    switch (random() % 6) {
      case 0:
      case 1: have.push_back(b.op("Softmax", SoftmaxOp{-1}, {any()})); break;
      case 2: have.push_back(b.pointwise(PointwiseOp::add, {any(), any()})); break;
      case 3: have.push_back(b.pointwise(PointwiseOp::exp, {any()})); break;
      case 4: have.push_back(b.op("MatMul", MatMulOp{}, {any(), b.weights({24, 24}, 0.01f)})); break;
      default: {
        const auto parts = b.many("Split", SplitOp{1, {}}, {any()}, 2);
        have.push_back(b.op("Concat", ConcatOp{1}, {b.op("Softmax", SoftmaxOp{-1}, {parts[1]}), parts[0]}));
      }
    }
  }
  b.graph.outputs = {have.back()};
  if (random() % 3 == 0) b.graph.outputs.push_back(have[have.size() - 2]);
  auto graph = testing::ready(b.graph);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return std::move(*graph);
}

TEST(HostMoves, CheapStepsBetweenTwoOfTheHostGoThere) {
  for (const int middle : {1, 3, 8}) {
    const Graph graph = chain(middle, 4);
    const Device device = lacking({Family::softmax}, 1, 20e-6);
    const auto plan = plan_on(graph, device);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(count(*plan, Reason::cheaper_on_host), static_cast<size_t>(middle));
    EXPECT_EQ(count(*plan, Reason::no_kernel), 2u);
    size_t links = 0;
    for (const PlanStep& step : plan->steps) {
      links += step.runs_on == RunsOn::link;
      if (step.runs_on == RunsOn::device) {
        EXPECT_EQ(step.algorithm, "gemm") << step.name;
      }
      if (step.host_reason != Reason::cheaper_on_host) continue;
      EXPECT_EQ(step.runs_on, RunsOn::host);
      EXPECT_EQ(step.candidates[0].reason, Reason::none);
      EXPECT_TRUE(std::any_of(step.candidates.begin(), step.candidates.end(),
                              [](const Candidate& c) { return c.reason == Reason::cheaper_on_host && c.cost; }));
    }
    EXPECT_EQ(links, 2u);  // down in front of them all, up behind
    const std::string text = explain(*plan, device), json = explain_json(*plan, device), whole = to_text(*plan);
    EXPECT_NE(text.find("2 steps without a kernel here and " + std::to_string(middle) + " between them that are cheaper there"),
              std::string::npos)
        << text;
    EXPECT_NE(json.find("\"reason\": \"cheaper_on_host\""), std::string::npos);
    EXPECT_NE(whole.find("\n  on host cheaper_on_host\n"), std::string::npos);
    EXPECT_NE(explain(*plan, device, {.candidates = true, .step = {}}).find("cheaper_on_host"), std::string::npos);
  }
}

// The link decides, and how much faster the device is.
TEST(HostMoves, StepsThatTheDeviceDoesMuchFasterStay) {
  const Graph graph = chain(2, 20000);
  EXPECT_EQ(count(*plan_on(graph, lacking({Family::softmax}, 1, 20e-6)), Reason::cheaper_on_host), 2u);
  Device quick = lacking({Family::softmax}, 1000, 1e-9);
  quick.link_bytes_per_second = 1e15;
  EXPECT_EQ(count(*plan_on(graph, quick), Reason::cheaper_on_host), 0u);
}

// However slow the device is: nothing moves where no step is the host's, nor in front of the first or behind the last of them.
TEST(HostMoves, NothingMovesThatIsNotBetween) {
  const Graph graph = chain(3, 64);
  const auto whole = plan_on(graph, lacking({}, 0.001, 1));
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->host.empty());
  EXPECT_EQ(to_text(*whole), to_text(*plan_on(graph, lacking({}, 0.001, 1), nullptr, false)));
  GraphBuilder b;
  TensorId x = b.pointwise(PointwiseOp::abs, {b.input({4, 16})});
  x = b.op("Softmax", SoftmaxOp{-1}, {b.pointwise(PointwiseOp::neg, {x})});
  const Graph one = std::move(*testing::ready(b.done(b.pointwise(PointwiseOp::exp, {b.pointwise(PointwiseOp::abs, {x})}))));
  const auto plan = plan_on(one, lacking({Family::softmax}, 0.001, 1));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(count(*plan, Reason::no_kernel), 1u);
  EXPECT_EQ(count(*plan, Reason::cheaper_on_host), 0u);
}

TEST(HostMoves, NoPlanIsDearerForThemOnRandomNets) {
  std::mt19937_64 random(21);
  const std::vector<size_t> none;
  int moved = 0;
  for (int draw = 0; draw < 120; ++draw) {
    const Graph graph = random_net(random, 3 + draw % 20);
    const Device device = lacking({Family::softmax}, draw % 2 ? 1 : 20, draw % 3 == 0 ? 1e-7 : draw % 3 == 1 ? 3e-6 : 5e-5);
    const auto with = plan_on(graph, device), without = plan_on(graph, device, &none);
    ASSERT_TRUE(with.ok()) << with.error().message;
    ASSERT_TRUE(without.ok()) << without.error().message;
    EXPECT_EQ(count(*without, Reason::cheaper_on_host), 0u);
    const bool any = count(*with, Reason::cheaper_on_host) > 0;
    moved += any;
    EXPECT_LE(with->predicted_seconds(), without->predicted_seconds()) << draw;
    if (!any) {
      EXPECT_EQ(to_text(*with), to_text(*without)) << draw;
    }
    for (const PlanStep& step : with->steps) EXPECT_EQ(step.runs_on == RunsOn::host, step.host_reason != Reason::none);
  }
  EXPECT_GT(moved, 30);
}

TEST(HostMoves, NoAssignmentIsCheaperOnSmallNets) {
  std::mt19937_64 random(22);
  int moved = 0;
  for (int draw = 0; draw < 40; ++draw) {
    const Graph graph = random_net(random, 3 + draw % 4);
    const Device device = lacking({Family::softmax}, draw % 2 ? 1 : 20, draw % 3 == 0 ? 1e-7 : draw % 3 == 1 ? 3e-6 : 5e-5);
    const auto chosen = plan_on(graph, device);
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    const std::vector<size_t> none;
    const auto without = plan_on(graph, device, &none);
    size_t steps = 0;
    for (const PlanStep& step : without->steps) steps += step.runs_on != RunsOn::link;
    if (steps > 9) continue;
    double least = without->predicted_seconds();
    for (unsigned bits = 1; bits < 1u << steps; ++bits) {
      std::vector<size_t> moves;
      for (size_t i = 0; i < steps; ++i)
        if (bits >> i & 1) moves.push_back(i);
      const auto plan = plan_on(graph, device, &moves);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      least = std::min(least, plan->predicted_seconds());
    }
    EXPECT_NEAR(chosen->predicted_seconds(), least, 1e-9 * least) << draw;
    moved += count(*chosen, Reason::cheaper_on_host) > 0;
  }
  EXPECT_GT(moved, 5);
}

// Both sides' memory counts: where the plan no longer fits, what could move stays.
TEST(HostMoves, AMemoryBudgetComesFirst) {
  const Graph graph = chain(3, 512);
  const Device device = lacking({Family::softmax}, 1, 20e-6), host = testing::device_named("epyc-zen4");
  PlanOptions options;
  options.host_device = &host;
  options.fuse = false;
  int64_t fitting = 0;
  for (options.memory_budget = 1 << 20; options.memory_budget > 0; options.memory_budget -= 4096) {
    const auto plan = make_plan(graph, device, options);
    if (!plan.ok()) {
      EXPECT_EQ(plan.error().reason, Reason::over_memory_budget);
      break;
    }
    fitting = options.memory_budget;
  }
  EXPECT_GT(fitting, 0);
}

}  // namespace
}  // namespace sparkle
