// The self-tests of every variant that a device has: each form of operands that its family names, with each schedule that a
// planner on this device would find for it.
#pragma once

#include <string>
#include <vector>

#include "backends/self_tests/self_tests.h"

namespace sparkle {

struct VariantSelfTests {
  std::string name;  // "gemm/mma"
  std::vector<SelfTest> self_tests;
};
std::vector<VariantSelfTests> self_tests_of_variants(const Device& device);

// The forms of a family without schedules.
std::vector<SelfTest> self_test_forms(Family family);

}  // namespace sparkle
