// Scales and zero points along one axis, as a kernel over neighbours in memory sees them.
#pragma once

#include <optional>

#include "families/stage.h"

namespace sparkle {

// A dense tensor in the order of its memory: `outer` times `channels` runs of `inner` neighbours, each run with the scale and
// zero point of its channel. One channel: the same for all.
struct ChannelRuns {
  int axis = -1;  // of the channels; -1 where there is one
  int64_t outer = 1, channels = 1, inner = 1;
};
// Of a quantize or dequantize stage without blocks whose y is dense; none where scale or zero point lie along more than one
// axis.
std::optional<ChannelRuns> channel_runs(const Stage& stage);

// Elements that are neighbours in both tensors of one shape, whatever their layouts; 0 where the innermost ones are none.
int64_t common_run(const TensorDesc& x, const TensorDesc& y);

}  // namespace sparkle
