// Sample stages of windows and of sums with an epilogue (FamilyInfo::samples).
#pragma once

#include "families/samples.h"

namespace sparkle {

// A window with its own filter on planes a little larger than it: channels in whole vectors and not.
Stage window_sample(const StageParams& params, const Window& w, const Epilogue* e, int64_t groups, bool depthwise, int64_t wide,
                    int64_t gap);

// The operands of an epilogue behind a stage's own; `axis`: that of the channels.
void add_epilogue_operands(Stage& stage, const Epilogue& e, int64_t channels, int axis);

}  // namespace sparkle
