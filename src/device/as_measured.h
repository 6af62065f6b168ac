// A GPU of a data sheet as a driver and Sparkle's probes would describe it: for tests of plans that a real device gets.
#pragma once

#include "device/device.h"

namespace sparkle {

// Keeps only the fields that the Vulkan backend's description and its probes write; rates are `share` of those on the data
// sheet, launches take as much longer.
Device as_measured(const Device& data_sheet, double share = 0.85);

}  // namespace sparkle
