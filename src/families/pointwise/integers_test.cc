// Integer forms of element-wise operations.
#include "families/pointwise/integers.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

// Bounds come as doubles from a model's attributes and need not be numbers of the type.
TEST(PointwiseIntegers, BoundsBeyondTheTypeSaturate) {
  EXPECT_EQ(integers::bounded<uint8_t>(7, 300, 400), 255);
  EXPECT_EQ(integers::bounded<uint8_t>(7, -5e18, -4e18), 0);
  EXPECT_EQ(integers::bounded<int64_t>(7, -1e300, 1e300), 7);
  EXPECT_EQ(integers::bounded<int32_t>(7, 8.5, 20), 9);
}

}  // namespace
}  // namespace sparkle
