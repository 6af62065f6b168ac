// Depthwise convolutions on GPUs: fp32, one output a thread over any layout, or four channels of one or of a tile of outputs,
// in which pixels that are loaded together serve several outputs.
#pragma once

#include "families/depthwise/depthwise.h"
#include "families/family.h"
#include "families/stage.h"

namespace sparkle {

// `columns`: of the variant's tile.
std::vector<Schedule> depthwise_gpu_schedules(const Stage& stage, const Variant& variant, int columns, const Device& device,
                                              Reason& why_not);

// Work and traffic into `f`, which is that of a streaming stage: each tile reads its pixels from the innermost cache, and that
// has those that tiles share from the next level once. `inside`: products of a channel that padding leaves.
void depthwise_gpu_footprint(const Stage& stage, const DepthwiseSchedule& s, const Device& device, double inside, Footprint& f);

}  // namespace sparkle
