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

}  // namespace
}  // namespace sparkle
