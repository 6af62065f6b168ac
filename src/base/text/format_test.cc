#include "base/text/format.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

TEST(Format, IsAsLongAsItsText) {
  EXPECT_EQ(format("%s", ""), "");
  EXPECT_EQ(format("%-4s|%5.1f|%d", "ab", 2.25, 7), "ab  |  2.2|7");
  EXPECT_EQ(format("%3000d", 1).size(), 3000u);  // longer than any buffer that callers once had
}

}  // namespace
}  // namespace sparkle
