#include "base/half_floats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sparkle {
namespace {

TEST(HalfFloats, EachHalfComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float v = half_to_float(static_cast<uint16_t>(bits));
    if (v != v) continue;
    ASSERT_EQ(float_to_half(v), bits);
    ASSERT_EQ(double_to_half(static_cast<double>(v)), bits);
  }
}

TEST(HalfFloats, RoundToNearestEven) {
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);
  EXPECT_EQ(float_to_half(1 + 0x1p-11f), 0x3c00);
  EXPECT_EQ(float_to_bfloat16(1 + 0x1p-8f), 0x3f80);
}

// A float between would be the middle of two fp16 values.
TEST(HalfFloats, DoublesAreRoundedOnce) {
  EXPECT_EQ(double_to_half(1 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(double_to_half(-1 - 0x1p-11 - 0x1p-40), 0xbc01);
  EXPECT_EQ(double_to_half(1 + 0x1p-11 - 0x1p-40), 0x3c00);
  EXPECT_EQ(double_to_half(1 + 3 * 0x1p-11 - 0x1p-40), 0x3c01);
  EXPECT_EQ(double_to_half(0x1p-25 + 0x1p-70), 1);
  EXPECT_EQ(double_to_half(65520 - 0x1p-30), 0x7bff);
  EXPECT_EQ(double_to_half(-1e300), 0xfc00);
  EXPECT_EQ(double_to_half(-5e-324), 0x8000);
  EXPECT_TRUE(std::isnan(half_to_float(double_to_half(NAN))));
}

}  // namespace
}  // namespace sparkle
