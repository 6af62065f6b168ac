// One stage of a trial on the device: run twice, each time on operands of its own and with outputs and workspace wiped before,
// all of the outputs compared with the family's reference.
#pragma once

#include <chrono>

#include "backends/backend.h"
#include "families/stage.h"

namespace sparkle::vulkan {

// `constants` as in Backend::compile. Nothing is run where the variant has nothing to do with such a stage, or with constants.
// Errors: failed_probe saying what was wrong, or what the driver says.
Status try_stage(Backend& backend, const Stage& stage, const Schedule& schedule, uint32_t constants,
                 std::chrono::nanoseconds timeout);

}  // namespace sparkle::vulkan
