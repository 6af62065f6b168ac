// Rates of a CPU that nobody has measured yet, estimated from what a probe knows: clock, lanes, caches. Enough for the planner
// to rank candidates as it would by measured rates; never shown as a roof.
#pragma once

#include "device/device.h"

namespace sparkle {

// Fills rates of `device` that are zero; leaves `calibrated` alone. Deterministic, and nothing for devices other than CPUs.
void estimate_rates(Device& device);

}  // namespace sparkle
