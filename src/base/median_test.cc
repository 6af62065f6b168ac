#include "base/median.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({7, 1, 100, 3}), 5);
  EXPECT_EQ(median({2, 2, 1, 2}), 2);
}

TEST(Median, SpreadIsOfValuesInAnyOrder) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back((i * 37 + 50) % 100 + 1);
  const Spread s = spread_of(values);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 50.5);
  EXPECT_EQ(s.p95, 96);
  EXPECT_EQ(spread_of({4}).p95, 4);
  EXPECT_EQ(spread_of({}).min, 0);
}

}  // namespace
}  // namespace sparkle
