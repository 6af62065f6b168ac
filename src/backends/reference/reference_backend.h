// The reference backend: every stage by its family's plain loops, and a device as far from the host as a GPU: its memory cannot
// be seen, work is queued and completes on a thread of its own. It keeps everybody honest who claims to be ready for GPUs.
#pragma once

#include "backends/backend.h"

namespace sparkle {

std::shared_ptr<Backend> make_reference_backend();
// The machine it pretends to be: one core, one plain unit.
Device reference_device();

}  // namespace sparkle
