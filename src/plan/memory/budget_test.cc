// Memory budgets: plans that fit take candidates with smaller weights, lose as little time as they can and say so.
#include "plan/memory/budget.h"

#include <gtest/gtest.h>

#include "networks/zoo.h"
#include "plan/explain.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

Graph ready(const char* name) {
  Graph graph = std::move(*zoo_network(name));
  EXPECT_TRUE(simplify(graph).ok());
  std::vector<InputBinding> bindings;
  for (TensorId id : graph.inputs) bindings.push_back({graph.tensor(id).shape, std::nullopt});
  Graph bound = std::move(*sparkle::bind(graph, bindings));
  EXPECT_TRUE(simplify(bound).ok());
  return bound;
}

TEST(Budget, SmallerWeightsWhereTheFastestPlanIsTooLarge) {
  const Device device = testing::device_named("epyc-zen4");
  const Graph graph = ready("resnet50");
  const auto fastest = make_plan(graph, device);
  ASSERT_TRUE(fastest.ok());
  EXPECT_EQ(fastest->budget_steps, 0);
  const int64_t most = planned_bytes(*fastest, device);
  PlanOptions options;
  options.algorithm = "gemm";
  const auto smallest = make_plan(graph, device, options);
  ASSERT_TRUE(smallest.ok());
  const int64_t least = planned_bytes(*smallest, device);
  ASSERT_LT(least, most);
  options = {};
  double before = fastest->predicted_seconds();
  for (const int64_t budget : {most, most - 1, (most + least) / 2, least}) {
    SCOPED_TRACE(budget);
    options.memory_budget = budget;
    const auto plan = make_plan(graph, device, options);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(planned_bytes(*plan, device), budget);
    EXPECT_EQ(plan->budget_steps == 0, budget == most);
    EXPECT_NEAR(plan->budget_seconds, plan->predicted_seconds() - fastest->predicted_seconds(), 1e-9);
    EXPECT_GE(plan->predicted_seconds(), before - 1e-9);
    before = plan->predicted_seconds();
    EXPECT_EQ(to_text(*plan).find("\nbudget steps=") != std::string::npos, plan->budget_steps > 0);
    if (budget == most) continue;
    int refused = 0;
    for (const PlanStep& step : plan->steps)
      for (const Candidate& c : step.candidates) refused += c.reason == Reason::over_memory_budget;
    EXPECT_GE(refused, plan->budget_steps);
    EXPECT_NE(explain(*plan, device).find("for the memory budget"), std::string::npos);
  }
  options.memory_budget = least / 2;
  const auto refused = make_plan(graph, device, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, Reason::over_memory_budget);
}

TEST(Budget, IsRefusedInOneSentence) {
  EXPECT_TRUE(check_budget("The model 'x'", 1000, 0).ok());
  EXPECT_TRUE(check_budget("The model 'x'", 1000, 1000).ok());
  const Status over = check_budget("Measuring y", 1001, 1000, "a smaller layer");
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().reason, Reason::over_memory_budget);
  EXPECT_EQ(over.error().message,
            "Measuring y needs 1001 bytes, the memory budget is 1000; give a smaller layer or a larger --memory-budget.");
}

}  // namespace
}  // namespace sparkle
