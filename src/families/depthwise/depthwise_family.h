// The parts that depthwise_info() is made of.
#pragma once

#include "families/family.h"
#include "families/stage.h"

namespace sparkle {

Blocking depthwise_blocking(const Stage& stage, const Schedule& schedule, const Device& device);

}  // namespace sparkle
