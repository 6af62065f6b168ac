// A loop nest over several operands, made as short as their layouts allow: axes in the order of memory, axes of size one
// dropped, neighbours merged where every operand passes from one to the next without a jump.
#pragma once

#include <span>
#include <vector>

#include "base/tensor.h"

namespace sparkle::cpu {

struct LoopNest {
  Dims size;                  // outermost first; at least one axis
  std::vector<Dims> strides;  // per operand, same order, in elements

  int rank() const { return size.size(); }
  // Element offset of operand `i` at the linear index over the axes [0, axes).
  int64_t offset(size_t i, int64_t linear, int axes) const {
    int64_t at = 0;
    for (int axis = axes - 1; axis > 0; --axis) {
      at += linear % size[axis] * strides[i][axis];
      linear /= size[axis];
    }
    return axes > 0 ? at + linear * strides[i][0] : at;
  }
};

// Axes are ordered by the strides of operand `leader`, largest first; its axes of stride 0 go outermost.
LoopNest make_nest(const Dims& shape, std::span<const Dims> strides, size_t leader);

}  // namespace sparkle::cpu
