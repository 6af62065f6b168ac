// One stage of a self-test on the device (backends/self_tests/sample_run.h).
#pragma once

#include <chrono>

#include "backends/backend.h"
#include "families/stage.h"

namespace sparkle {

// `constants` as in Backend::compile. Nothing is run where the variant has nothing to do with such a stage, or with constants.
// Errors: failed_probe saying what was wrong, or what the driver says.
Status try_stage(Backend& backend, const Stage& stage, const Schedule& schedule, uint32_t constants,
                 std::chrono::nanoseconds timeout);

}  // namespace sparkle
