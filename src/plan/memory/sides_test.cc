// The least cut against every assignment there is, on graphs of a few steps; and at a size that models have, in their time.
#include "plan/memory/sides.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <random>

namespace sparkle {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Steps that read what some before them wrote, or the caller gave.
SideGraph random_graph(std::mt19937_64& random, int steps, double link) {
  SideGraph graph;
  std::uniform_real_distribution<double> seconds(0, 10);
  const auto any = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  const auto write = [&](int writer) { graph.shared.push_back({writer, {}, any(5) == 0, link * seconds(random)}); };
  write(-1);
  for (int i = 0; i < steps; ++i) {
    for (int reads = 1 + any(2); reads > 0; --reads) {
      SharedBytes& read = graph.shared[graph.shared.size() - 1 - static_cast<size_t>(any(std::min(4, i + 1)))];
      if (read.readers.empty() || read.readers.back() != i) read.readers.push_back(i);
    }
    const int kind = any(5);
    graph.steps.push_back({kind == 0 ? kInfinite : seconds(random), kind == 1 ? kInfinite : seconds(random)});
    for (int writes = 1 + (any(4) == 0); writes > 0; --writes) write(i);
  }
  return graph;
}

TEST(Sides, NoAssignmentIsCheaperThanTheLeastCut) {
  std::mt19937_64 random(3);
  int changed = 0;
  for (int draw = 0; draw < 400; ++draw) {
    const int steps = 1 + draw % 10;
    const SideGraph graph = random_graph(random, steps, draw % 3 == 0 ? 0.1 : draw % 3 == 1 ? 1 : 10);
    const double found = seconds_of(graph, cheapest_sides(graph));
    double least = kInfinite, untouched = 0;
    for (unsigned bits = 0; bits < 1u << steps; ++bits) {
      std::vector<bool> on_host;
      for (int i = 0; i < steps; ++i) on_host.push_back((bits >> i & 1) != 0);
      least = std::min(least, seconds_of(graph, on_host));
    }
    std::vector<bool> where_it_must;
    for (const SideCost& step : graph.steps) where_it_must.push_back(step.device == kInfinite);
    untouched = seconds_of(graph, where_it_must);
    EXPECT_NEAR(found, least, 1e-9 * least) << draw;
    EXPECT_LE(found, untouched * (1 + 1e-12)) << draw;
    changed += found < untouched;
  }
  EXPECT_GT(changed, 100);
}

TEST(Sides, StepsThatOnlyOneSideCanDoStayThere) {
  std::mt19937_64 random(4);
  for (int draw = 0; draw < 100; ++draw) {
    const SideGraph graph = random_graph(random, 40, 1);
    const std::vector<bool> on_host = cheapest_sides(graph);
    for (size_t i = 0; i < on_host.size(); ++i) {
      if (graph.steps[i].device == kInfinite) {
        EXPECT_TRUE(on_host[i]) << i;
      }
      if (graph.steps[i].host == kInfinite) {
        EXPECT_FALSE(on_host[i]) << i;
      }
    }
  }
}

// One reader there or five: the bytes go over once. And of steps that cost the same on both sides none moves.
TEST(Sides, BytesGoOverOnce) {
  SideGraph graph;
  for (int i = 0; i < 6; ++i) graph.steps.push_back(i == 0 ? SideCost{1, 4} : SideCost{kInfinite, 1});
  graph.shared = {{0, {1, 2, 3, 4, 5}, false, 2}};
  EXPECT_EQ(seconds_of(graph, {false, true, true, true, true, true}), 8);
  EXPECT_FALSE(cheapest_sides(graph)[0]);  // 3 more there, 2 over the link
  graph.shared[0].seconds = 3.5;
  EXPECT_TRUE(cheapest_sides(graph)[0]);
  graph.shared[0].read_by_caller = true;  // then they go over anyway
  EXPECT_FALSE(cheapest_sides(graph)[0]);
  graph = {{{1, 1}, {2, 2}}, {{0, {1}, false, 1}}};
  EXPECT_EQ(cheapest_sides(graph), std::vector<bool>(2, false));
  EXPECT_TRUE(cheapest_sides({}).empty());
}

TEST(Sides, BetweenIsWhatReadsFromOneAndIsReadByAnother) {
  SideGraph graph;
  graph.steps = {{1, 1}, {kInfinite, 1}, {1, 1}, {1, 1}, {kInfinite, 1}, {1, 1}};
  // 0 -> 1 -> 2 -> 4 -> 5, and 1 -> 3 -> 5.
  graph.shared = {{0, {1}}, {1, {2, 3}}, {2, {4}}, {3, {5}}, {4, {5}}};
  EXPECT_EQ(between_host_steps(graph), (std::vector<bool>{false, false, true, false, false, false}));
  graph.steps[1].device = 1;
  EXPECT_EQ(between_host_steps(graph), std::vector<bool>(6, false));
}

TEST(Sides, LongChainsAreCutInTheirTime) {
  std::mt19937_64 random(5);
  const SideGraph graph = random_graph(random, 100000, 1);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<bool> on_host = cheapest_sides(graph);
  EXPECT_EQ(on_host.size(), 100000u);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 30);
}

}  // namespace
}  // namespace sparkle
