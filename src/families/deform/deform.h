// The deform family: a convolution whose every tap is moved by an offset that is data, and read between elements by linear
// interpolation; outside of x lie zeros. One row of offsets per pixel, tap and offset group.
// Operands: x [N,C,H,W], w [K,C/groups,R,S], offset [N,offset_groups*R*S*2,P,Q] (down, then right, for each tap), then bias [K]
// and mask [N,offset_groups*R*S,P,Q] (a factor per tap) if present -> y [N,K,P,Q].
// Source: https://onnx.ai/onnx/operators/onnx__DeformConv.html (deformable convolution, versions 1 and 2).
#pragma once

#include <array>

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct DeformParams {
  std::array<int64_t, 2> filter{1, 1}, stride{1, 1}, dilation{1, 1}, pad_begin{0, 0};
  int64_t groups = 1, offset_groups = 1;
  bool bias = false, mask = false;

  template <class V>
  void visit(V& v) {
    v("filter", filter), v("stride", stride), v("dilation", dilation), v("pad_begin", pad_begin);
    v("groups", groups), v("offset_groups", offset_groups), v("bias", bias), v("mask", mask);
  }
  friend bool operator==(const DeformParams&, const DeformParams&) = default;
};

// The four elements around a place of an image and their weights; those outside are left out.
struct DeformTaps {
  std::array<int64_t, 4> h{}, w{};
  std::array<float, 4> weight{};
  int count = 0;
};
DeformTaps deform_taps(float h, float w, int64_t height, int64_t width);

}  // namespace sparkle
