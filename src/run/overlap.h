// Whether buffers that a caller hands over for a run may be worked on at once.
#pragma once

#include <span>

#include "backends/backend.h"
#include "plan/plan.h"

namespace sparkle {

// Kernels run at once where none reads what another writes: outputs may not lie on each other nor on inputs. `places`: of the
// plan's inputs, then its outputs. Errors: bad_usage naming both tensors.
Status check_overlap(const Plan& plan, std::span<Buffer* const> places);

}  // namespace sparkle
