// Taps of a resize: which elements of x along one axis make one element of y, and with which weights. Kernels build these
// tables once; the weights of all axes multiply.
#pragma once

#include "families/resize/resize.h"

namespace sparkle {

// What an axis needs, known without its tables (planning never makes those: an axis may be as long as memory allows).
struct ResizeAxis {
  int64_t count = 1;      // taps per output index: 1 nearest, 2 linear, 4 cubic, more where
                          // antialiasing widens them; 1 where the axis is not resized
  bool identity = false;  // y's index is x's index
};

ResizeAxis resize_axis(const ResizeParams& params, int axis, int64_t in_size, int64_t out_size);

struct ResizeTaps : ResizeAxis {
  std::vector<int64_t> index;    // [out][count], clamped to x
  std::vector<double> weight;    // [out][count]
  std::vector<uint8_t> outside;  // [out]: 1 where tf_crop asks for the extrapolation value; empty if nowhere
};

ResizeTaps resize_taps(const ResizeParams& params, int axis, int64_t in_size, int64_t out_size);

}  // namespace sparkle
