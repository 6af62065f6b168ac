// What weights take once a kernel has packed them, as far as a family can foresee it: the planner weighs memory with it.
// Kernels have the last word (Kernel::packed_bytes); src/run/packed_bytes_test.cc holds the two against each other.
#pragma once

#include "device/device.h"
#include "families/stage.h"

namespace sparkle {

// Bytes of operand 1 packed, where it is constant; 0 where it is used as it is, or the family does not say.
int64_t packed_weight_bytes(const Stage& stage, const Schedule& schedule, const Device& device);

}  // namespace sparkle
