// Self-tests of speed: a variant on matrix units is worth its rounding only where it is faster than the plain one, which some
// drivers' emulations are not.
#pragma once

#include "backends/self_tests/self_tests.h"

namespace sparkle {

// Whether the self-test's variant has to be faster than another one of its family.
bool needs_speed(const SelfTest& self_test);
// What it is compared with: "gemm/implicit".
std::string rival_of(const SelfTest& self_test);

// How many times as long as its rival the self-test's variant takes on stages of middling size (some ms at most on a GPU), by
// the device's clock; 0 where that stands still. Each with the schedule that gives the cores the least to do. Errors:
// failed_probe where there is no answer in time, and what the driver says.
Result<double> times_of_rival(Backend& backend, const SelfTest& self_test, std::chrono::nanoseconds timeout);

}  // namespace sparkle
