// KernelPaces of this machine: small layers whose operands stay in the inner caches, by the variants that arithmetic bounds,
// each beside a probe of the peak at that moment. Takes some 0.2 s.
#pragma once

#include "base/system/executor.h"
#include "device/device.h"

namespace sparkle {

// Of the widest vector unit, with all of the executor's threads; `device` has measured rates. What cannot be measured keeps 1.
void measure_paces(Device& device, Executor& executor);

}  // namespace sparkle
