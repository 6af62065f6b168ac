// What sums of products and windows do on the way, in words: the part of a Blocking that epilogue and window tell.
#pragma once

#include "families/blocking.h"
#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

void add_fused(Blocking& blocking, const Epilogue& epilogue);
// Padding that no copy lays around the input; `gathered`: taps are read where they lie, without im2col.
void add_fused(Blocking& blocking, const Window& window, bool gathered);
// streaming_blocking() with what the stage's parameters fuse: plain loops, and families without loops over tiles.
Blocking plain_blocking(const Stage& stage, const Schedule& schedule, const Device& device);

}  // namespace sparkle
