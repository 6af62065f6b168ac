// Sample stages of windows and of sums with an epilogue (FamilyInfo::samples).
#pragma once

#include "families/windows/samples.h"
#include "families/windows/window.h"

namespace sparkle {

// A filter of 3x3 on planes that it leaves as large as they are.
Window small_window();

// Types of a sum of bytes with one factor, then its zero points.
inline const std::vector<DType> kScaledBytes{DType::u8, DType::i8, DType::f32, DType::u8, DType::i8, DType::i8};

// The products of each sum of a stage whose second operand are filters.
int64_t products_of(const Stage& stage);

struct WindowSample {
  int64_t channels = 1, filters = 1, depth = 1;  // of the image, of the result, channels that a filter reads
  int64_t columns = 6;                           // of the result
};
// A window on planes a little larger than it; elements of `gap` lie between neighbours.
Stage window_sample(const StageParams& params, const Window& w, const Epilogue* e, const WindowSample& sizes, int64_t gap);
// A window with its own filter on planes a little larger than it: channels in whole vectors and not.
Stage window_sample(const StageParams& params, const Window& w, const Epilogue* e, int64_t groups, bool depthwise, int64_t wide,
                    int64_t gap);

// The operands of an epilogue behind a stage's own; `axis`: that of the channels.
void add_epilogue_operands(Stage& stage, const Epilogue& e, int64_t channels, int axis);

}  // namespace sparkle
