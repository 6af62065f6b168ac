// Which devices take part in a stream: those whose part is worth having, one of those on the same cores, and the line that
// says so.
#include "run/choice/together.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

using Used = std::vector<bool>;

TEST(Together, DevicesOfLikeSpeedWorkTogether) {
  const TogetherChoice c = choose_together({{"cuda:0", 1e-3, false, ""}, {"cuda:1", 1e-3, false, ""}, {"cpu", 4e-3, true, ""}});
  EXPECT_EQ(c.used, Used({true, true, true}));
  EXPECT_NEAR(c.seconds, 1 / 2250.0, 1e-9);
  EXPECT_EQ(c.why,
            "cuda:0 and cuda:1 and cpu together: predicted 0.444 ms an item (cuda:0 alone 1 ms, cuda:1 alone 1 ms, cpu alone 4 "
            "ms)");
}

TEST(Together, WhoseShareIsSmallIsLeftOutAndNamed) {
  const TogetherChoice c = choose_together({{"cpu", 40e-3, true, ""}, {"vulkan:0", 1e-3, false, ""}});
  EXPECT_EQ(c.used, Used({false, true}));
  EXPECT_EQ(c.why, "vulkan:0 alone: predicted 1 ms an item; without cpu, which would take 2.4 % of the items at 40 ms each");
  EXPECT_EQ(choose_together({{"cpu", 18e-3, true, ""}, {"vulkan:0", 1e-3, false, ""}}).used, Used({true, true}));
  // One that alone would be small stays out, whatever several of its kind would do together.
  const TogetherChoice many = choose_together({{"a", 1, false, ""}, {"b", 25, false, ""}, {"c", 30, false, ""}});
  EXPECT_EQ(many.used, Used({true, false, false}));
}

TEST(Together, OfDevicesOnTheSameCoresTheFastestWorks) {
  const TogetherChoice c =
      choose_together({{"vulkan:0", 3e-3, true, ""}, {"cpu", 2e-3, true, ""}, {"cuda:0", 2e-3, false, ""}});
  EXPECT_EQ(c.used, Used({false, true, true}));
  EXPECT_NE(c.why.find("without vulkan:0, whose cores are those of cpu"), std::string::npos) << c.why;
}

TEST(Together, WhatCannotRunTheModelIsNamedAndUnknownSpeedsShare) {
  const TogetherChoice c = choose_together({{"a", 0, false, ""}, {"b", 0, false, "It has no kernel."}, {"c", 1, false, ""}});
  EXPECT_EQ(c.used, Used({true, false, true}));
  EXPECT_EQ(c.seconds, 0);
  EXPECT_EQ(c.why, "a and c together; without b, It has no kernel.");
  EXPECT_EQ(choose_together({{"a", 0, false, "no"}}).used, Used({false}));
}

TEST(Together, AThreadFeedsAGpuThatBringsMore) {
  EXPECT_EQ(threads_beside(8, 8e-3, {1e-3}), 7);              // eight GPUs' worth of a thread
  EXPECT_EQ(threads_beside(8, 8e-3, {70e-3}), 8);             // slower than one thread
  EXPECT_EQ(threads_beside(8, 8e-3, {1e-3, 1e-3}), 6);        // one each
  EXPECT_EQ(threads_beside(4, 8e-3, {1e-3, 1e-3, 1e-3}), 2);  // never fewer than half
  EXPECT_EQ(threads_beside(2, 0, {0}), 1);
  EXPECT_EQ(threads_beside(1, 1, {1e-3}), 1);  // there is none to leave
  EXPECT_EQ(threads_beside(8, 8e-3, {}), 8);
}

}  // namespace
}  // namespace sparkle
