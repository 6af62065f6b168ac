// A backend as small as one can be, over the references of the families: what a new toolchain brings is this folder, its device
// file, and one registration, which its test makes.
#pragma once

#include "run/opening/open_backend.h"

namespace sparkle::testing {

// The machine of device.json. Errors: what reading the file says.
Result<OpenBackend> open_loops(const BackendOptions& options);

inline constexpr BackendRow kLoopsBackend = {"loops", "loops", false, open_loops};

}  // namespace sparkle::testing
