// The judging of rates, on numbers: nothing here asks a clock.
#include "measure/roofs/roof_judge.h"

#include <gtest/gtest.h>

#include "device/device_json.h"

namespace sparkle {
namespace {

constexpr double kPeak = 100e9, kBandwidth = 20e9;

RoofVerdict flops_at(double share, std::vector<double> probes = {kPeak, kPeak, kPeak}, bool clock_of_device = false) {
  return judge({1e-3, share * kPeak * 1e-3, 0, 0, clock_of_device}, "avx2", probes, "L2", {kBandwidth});
}
RoofVerdict bytes_at(double share, double kept = 0, std::vector<double> probes = {kBandwidth}) {
  return judge({1e-3, 0, share * kBandwidth * 1e-3 + kept, kept, false}, "avx2", {kPeak}, "L2", probes);
}

TEST(RoofJudge, FivePercentAboveIsTheMostThreeByADevicesClock) {
  EXPECT_EQ(flops_at(1.00).error_text("x"), "");
  EXPECT_EQ(flops_at(1.049).error_text("x"), "");
  EXPECT_NE(flops_at(1.051).error_text("x"), "");
  EXPECT_EQ(flops_at(1.029, {kPeak}, true).error_text("x"), "");
  EXPECT_NE(flops_at(1.031, {kPeak}, true).error_text("x"), "");
  EXPECT_EQ(bytes_at(1.049).error_text("x"), "");
  EXPECT_NE(bytes_at(1.051).error_text("x"), "");
  EXPECT_NE(bytes_at(8.636).error_text("x"), "");
}

TEST(RoofJudge, TheProbesOwnSpreadCountsAndIsToldInTheSentence) {
  const std::vector<double> probes = {0.7 * kPeak, kPeak, 1.1 * kPeak};  // a neighbour slowed one of them down
  EXPECT_EQ(flops_at(1.14, probes).error_text("x"), "");
  const RoofVerdict above = flops_at(1.16, probes);
  EXPECT_NEAR(above.compute.spread, 0.1, 1e-9);
  const std::string sentence = above.error_text("layer 7");
  for (const char* part : {"'layer 7'", "116.0 executed GFLOP/s", "116 %", "100.0", "avx2", "15.0"})
    EXPECT_NE(sentence.find(part), std::string::npos) << part << ": " << sentence;
  EXPECT_NE(above.probed().find("probes within 10.0 %"), std::string::npos) << above.probed();
}

// The second core was another's twice: what the row's share of the roof is cannot be told, and is not to be averaged.
TEST(RoofJudge, ProbesThatDifferByAQuarterAreTold) {
  const RoofVerdict v = flops_at(1.0, {1.76 * kPeak, 1.76 * kPeak, 3.40 * kPeak});
  EXPECT_TRUE(v.compute.disturbed());
  EXPECT_TRUE(v.disturbed());
  EXPECT_FALSE(flops_at(1.0, {kPeak, kPeak, 1.24 * kPeak}).disturbed());
  EXPECT_TRUE(bytes_at(1.0, 0, {kBandwidth, kBandwidth, 1.26 * kBandwidth}).disturbed());
}

TEST(RoofJudge, TwoProbesHaveASpreadToo) {
  const RoofVerdict v = flops_at(1.0, {0.9 * kPeak, 1.1 * kPeak});
  EXPECT_NEAR(v.compute.roof, kPeak, 1);
  EXPECT_NEAR(v.compute.spread, 0.1, 1e-9);
}

TEST(RoofJudge, WhatIsNotProbedIsNotJudged) {
  EXPECT_EQ(flops_at(9, {}).error_text("x"), "");
  EXPECT_EQ(flops_at(9, {0, 0}).error_text("x"), "");
  EXPECT_EQ(bytes_at(9, 0, {0}).error_text("x"), "");
  EXPECT_EQ(flops_at(9, {}).probed(), "");
  EXPECT_NE(flops_at(9, {0, kPeak}).error_text("x"), "");
}

TEST(RoofJudge, WhatInnerLevelsMayHoldNeedNotCome) {
  EXPECT_EQ(bytes_at(1.04, 1e9).error_text("x"), "");
  EXPECT_NE(bytes_at(1.06, 1e9).error_text("x"), "");
  EXPECT_EQ(judge({1e-6, 0, 1000, 2000, false}, "", {}, "L2", {1.0}).error_text("x"), "");
}

TEST(RoofJudge, TheInnermostLevelThatHoldsIt) {
  Device device;
  device.cores = 4;
  const auto level = [&](const char* name, int64_t bytes, int shared_by) {
    MemoryLevel& l = device.memory.emplace_back();
    l.name = name, l.bytes = bytes, l.shared_by = shared_by;
  };
  level("L1", 32 << 10, 1), level("L2", 1 << 20, 2), level("L3", 32 << 20, 8), level("DRAM", int64_t{1} << 34, 8);
  EXPECT_EQ(holding_level(device, 4 * (32 << 10)), 0);
  EXPECT_EQ(holding_level(device, 4 * (32 << 10) + 1), 1);
  EXPECT_EQ(holding_level(device, 2 << 20), 1);
  EXPECT_EQ(holding_level(device, 3 << 20), 2);
  EXPECT_EQ(holding_level(device, 1e12), 3);
  EXPECT_EQ(held_inside(device, 2), 4.0 * (32 << 10) + 2.0 * (1 << 20));
  EXPECT_EQ(holding_level(Device{}, 1), -1);
  device.memory[0].filled_by_hand = true;  // a GPU's shared memory keeps nothing from one run to the next
  EXPECT_EQ(holding_level(device, 10), 1);
  EXPECT_EQ(held_inside(device, 2), 2.0 * (1 << 20));
}

}  // namespace
}  // namespace sparkle
