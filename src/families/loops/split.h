// Stages cut into parts that can run at once: the same family and parameters on a slice of one output axis. What lets plain
// loops use all threads.
#pragma once

#include "families/stage.h"

namespace sparkle {

// Which axis of each operand goes along when the stage is cut; -1: the operand is needed whole by every part.
struct SplitAxes {
  int64_t size = 1;  // along that axis; 1: the stage cannot be cut
  std::vector<int> inputs, outputs;
};
SplitAxes split_axes(const Stage& stage);

// The views of elements [begin, end) along an axis; the whole view for axis -1.
TensorView part_of(const TensorView& view, int axis, int64_t begin, int64_t end);

}  // namespace sparkle
