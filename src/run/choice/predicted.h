// What a run is predicted to take from the host's memory to the host's memory.
#pragma once

#include "device/device.h"
#include "plan/plan.h"

namespace sparkle {

// Seconds for inputs and outputs to and from the device; 0 where it works in the host's memory.
double predicted_transfers(const Plan& plan, const Device& device, const std::vector<HostTensor>& inputs);

}  // namespace sparkle
