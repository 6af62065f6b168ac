// Times of steps by given numbers: they add up to a typical run, and rows of `check` to their steps.
#include "measure/step_times.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/median.h"
#include "check/check.h"

namespace sparkle {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(StepTimes, OfAFewRunsAreTheirMeans) {
  EXPECT_TRUE(typical_steps({}).empty());
  EXPECT_EQ(typical_steps({{1, 2}}), (std::vector<double>{1, 2}));
  EXPECT_EQ(typical_steps({{1, 2}, {3, 6}}), (std::vector<double>{2, 4}));
  // The fastest and the slowest of four are left out.
  EXPECT_EQ(typical_steps({{100, 100}, {1, 2}, {3, 6}, {0, 0}}), (std::vector<double>{2, 4}));
}

// Twenty steps of 1, of which two take twice as long in each run, others each time.
TEST(StepTimes, AddUpWhereEachRunIsDisturbedElsewhere) {
  std::mt19937 random(7);
  std::vector<std::vector<double>> runs;
  std::vector<double> totals;
  for (int run = 0; run < 100; ++run) {
    std::vector<double> steps(20, 1.0);
    for (int k = 0; k < 2; ++k) steps[random() % 20] += 1;
    totals.push_back(sum(steps));
    runs.push_back(std::move(steps));
  }
  EXPECT_NEAR(sum(typical_steps(runs)), median(totals), 0.02 * median(totals));
  double medians = 0;
  for (size_t i = 0; i < 20; ++i) {
    std::vector<double> of_step;
    for (const auto& run : runs) of_step.push_back(run[i]);
    medians += median(of_step);
  }
  EXPECT_LT(medians, 0.95 * median(totals)) << "medians of steps would do as well";
}

TEST(StepTimes, RowsOfACheckAreTheSumsOfTheirSteps) {
  Verdict verdict;
  verdict.rows.resize(3);
  verdict.rows[0].steps = {0, 2}, verdict.rows[1].steps = {1}, verdict.rows[2].steps = {7};  // 7: there is none
  add_measured(verdict, {1, 10, 100}, 112);
  EXPECT_EQ(verdict.measured_seconds, 112);
  EXPECT_EQ(verdict.rows[0].measured_seconds, 101);
  EXPECT_EQ(verdict.rows[1].measured_seconds, 10);
  EXPECT_EQ(verdict.rows[2].measured_seconds, 0);
}

}  // namespace
}  // namespace sparkle
