// Trials of speed: a variant on matrix units is worth its rounding only where it is faster than the plain one, which some
// drivers' emulations are not.
#pragma once

#include "backends/vulkan/trials/trial.h"

namespace sparkle::vulkan {

// Whether the trial's variant has to be faster than another one of its family.
bool needs_speed(const Trial& trial);
// What it is compared with: "gemm/implicit".
std::string rival_of(const Trial& trial);

// How many times as long as its rival the trial's variant takes on stages of middling size (some ms at most on a GPU), by the
// device's clock; 0 where that stands still. Each with the schedule that gives the cores the least to do. Errors: failed_probe
// where there is no answer in time, and what the driver says.
Result<double> times_of_rival(Backend& backend, const Trial& trial, std::chrono::nanoseconds timeout);

}  // namespace sparkle::vulkan
