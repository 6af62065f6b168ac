// The CPU beside a device: what computes the steps that the device has no kernel for.
#pragma once

#include "backends/backend.h"

namespace sparkle {

// Works on the host threads of `device`, and keeps it alive. Errors: those of opening the CPU.
Result<std::shared_ptr<Backend>> open_host(const std::shared_ptr<Backend>& device);

}  // namespace sparkle
