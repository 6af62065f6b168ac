// KernelPaces of this machine: small layers whose operands stay in the inner caches, by the variants that arithmetic bounds,
// each beside a probe of the peak at that moment. Takes some 0.2 s.
#pragma once

#include "device/device.h"

namespace sparkle {

// Of the widest vector unit, on the calling thread: a core's kernels have a pace, and a second core that somebody else uses
// would look like slow kernels. `device` has measured rates. What cannot be measured keeps 1.
void measure_paces(Device& device);

}  // namespace sparkle
