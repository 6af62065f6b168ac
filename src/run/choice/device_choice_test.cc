// The choice of a device on simulated ones: within 10 % of the best wherever the cross-over lies and whatever predictions err,
// stable, and never a software device before the CPU.
#include "run/choice/device_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sparkle {
namespace {

// A device that takes `latency` a run and then so many flops and bytes a second.
struct Simulated {
  std::string name;
  double latency = 0, flops_per_second = 1, bytes_per_second = 0;  // of transfers; 0: none
  bool software = false;
  double seconds(double flops, double bytes) const {
    return latency + flops / flops_per_second + (bytes_per_second > 0 ? bytes / bytes_per_second : 0);
  }
};

struct Measured {
  std::vector<DeviceOffer> offers;
  int runs = 0;
};
// Offers whose predictions err by the given factors and whose measurements by up to 3 %.
Measured offers_of(const std::vector<Simulated>& devices, double flops, double bytes, const std::vector<double>& errors,
                   std::mt19937& random, int* runs) {
  Measured m;
  for (size_t i = 0; i < devices.size(); ++i) {
    const double truth = devices[i].seconds(flops, bytes);
    DeviceOffer offer;
    offer.name = devices[i].name, offer.software = devices[i].software;
    offer.predicted = truth * errors[i];
    offer.measure = [truth, &random, runs]() -> Result<double> {
      ++*runs;
      return truth * std::uniform_real_distribution<double>(0.97, 1.03)(random);
    };
    m.offers.push_back(std::move(offer));
  }
  return m;
}

const std::vector<Simulated> kMachine = {{"cpu", 5e-6, 1e11, 0}, {"vulkan:0", 2e-4, 5e12, 1e10}, {"cuda:0", 4e-5, 2e13, 2e10}};

TEST(DeviceChoice, IsWithinATenthOfTheBestOnBothSidesOfTheCrossOver) {
  std::mt19937 random(3);
  int runs = 0, measured = 0, cases = 0;
  for (double flops = 1e4; flops < 1e13; flops *= 1.7) {
    for (int draw = 0; draw < 20; ++draw, ++cases) {
      // Each prediction errs by up to 1.4 either way: two of them are off by less than the factor within which both are
      // measured.
      std::vector<double> errors;
      for (size_t i = 0; i < kMachine.size(); ++i)
        errors.push_back(std::exp2(std::uniform_real_distribution<double>(-0.48, 0.48)(random)));
      const double bytes = std::sqrt(flops) * 100;
      const auto offers = offers_of(kMachine, flops, bytes, errors, random, &runs);
      const auto decision = choose_device(offers.offers, "");
      ASSERT_TRUE(decision.ok());
      measured += decision->measured;
      double best = INFINITY, taken = 0;
      for (const Simulated& d : kMachine) {
        best = std::min(best, d.seconds(flops, bytes));
        if (d.name == decision->device) taken = d.seconds(flops, bytes);
      }
      EXPECT_LE(taken, 1.1 * best) << flops << " flops: " << decision->why;
    }
  }
  EXPECT_LT(measured, cases);  // only where predictions are close
  EXPECT_GT(measured, 0);
}

TEST(DeviceChoice, SmallModelsGoToTheCpuAndLargeOnesToTheGpu) {
  std::mt19937 random(5);
  int runs = 0;
  const std::vector<double> right(3, 1.0);
  EXPECT_EQ(choose_device(offers_of(kMachine, 1e5, 1e3, right, random, &runs).offers, "")->device, "cpu");
  EXPECT_EQ(choose_device(offers_of(kMachine, 1e12, 1e7, right, random, &runs).offers, "")->device, "cuda:0");
  EXPECT_EQ(runs, 0);  // clear: nothing was measured
}

TEST(DeviceChoice, ASoftwareDeviceIsNeverPreferredToTheCpu) {
  std::mt19937 random(1);
  int runs = 0;
  const std::vector<Simulated> devices = {{"vulkan:0", 0, 1e15, 0, true}, {"cpu", 1e-3, 1e9, 0}};
  const auto decision = choose_device(offers_of(devices, 1e9, 0, {1, 1}, random, &runs).offers, "vulkan:0");
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision->device, "cpu");
  EXPECT_EQ(decision->rows[0].why, "a software device, whose cores are the CPU's");
  // Where it is all there is it serves.
  auto alone = offers_of(devices, 1e9, 0, {1, 1}, random, &runs).offers;
  alone[1].unusable = "it is switched off";
  EXPECT_EQ(choose_device(alone, "")->device, "vulkan:0");
}

TEST(DeviceChoice, TwoThatAreEvenDoNotTakeTurns) {
  std::mt19937 random(9);
  int runs = 0;
  const std::vector<Simulated> even = {{"cpu", 0, 1e11, 0}, {"vulkan:0", 0, 1.02e11, 0}};
  std::string before;
  for (int i = 0; i < 50; ++i) {
    const auto decision = choose_device(offers_of(even, 1e9, 0, {1, 1}, random, &runs).offers, before);
    ASSERT_TRUE(decision.ok());
    if (!before.empty()) {
      EXPECT_EQ(decision->device, before) << i;
    }
    before = decision->device;
  }
  // One that is clearly better is taken all the same.
  const std::vector<Simulated> better = {{"cpu", 0, 1e11, 0}, {"vulkan:0", 0, 1.5e11, 0}};
  EXPECT_EQ(choose_device(offers_of(better, 1e9, 0, {1, 1}, random, &runs).offers, "cpu")->device, "vulkan:0");
}

TEST(DeviceChoice, WhatFailsIsPassedOverAndSaid) {
  std::vector<DeviceOffer> offers(3);
  offers[0].name = "cuda:0", offers[0].unusable = "the driver is too old";
  offers[1].name = "vulkan:0", offers[1].predicted = 1e-3;
  offers[1].measure = []() -> Result<double> { return Error{Reason::device_lost, "The device is lost."}; };
  offers[2].name = "cpu", offers[2].predicted = 1.5e-3;
  offers[2].measure = []() -> Result<double> { return 2e-3; };
  const auto decision = choose_device(offers, "");
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision->device, "cpu");
  EXPECT_EQ(decision->rows[0].why, "the driver is too old");
  EXPECT_EQ(decision->rows[1].why, "The device is lost.");
  EXPECT_NE(to_table(*decision).find("The device is lost."), std::string::npos);
  // Where the close ones fail the next is asked.
  offers[2].predicted = 1;
  offers[2].unusable.clear();
  offers.push_back(offers[1]);
  offers[3].name = "vulkan:1";
  EXPECT_EQ(choose_device(offers, "")->device, "cpu");
  offers.erase(offers.begin() + 2);
  const auto none = choose_device(offers, "");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().reason, Reason::device_unusable);
  EXPECT_EQ(choose_device({}, "").error().reason, Reason::device_unusable);
}

}  // namespace
}  // namespace sparkle
