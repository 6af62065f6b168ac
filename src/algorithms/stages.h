// How algorithms cut a call into stages; shared by the files of this folder.
#pragma once

#include "algorithms/algorithm.h"

namespace sparkle {

// All operands of the call straight into one stage.
StageUse whole_call(const AnchorCall& call, StageParams params);

// A transposed convolution as ordinary ones of stride 1: one per phase of the stride (and per group).
StagePlan transposed_stages(const AnchorCall& call);

}  // namespace sparkle
