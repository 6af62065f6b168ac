// Window: the geometry of a sliding filter in one to three spatial dimensions, always held as three (T,R,S over D,H,W):
// missing leading dimensions have filter 1, stride 1, dilation 1 and no padding. Output sizes come from the output tensor.
#pragma once

#include <array>

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

using Triple = std::array<int64_t, 3>;

struct Window {
  Triple filter{1, 1, 1};
  Triple stride{1, 1, 1};
  Triple dilation{1, 1, 1};
  Triple pad_begin{0, 0, 0};  // may be negative: the window then starts inside the input
  Triple pad_end{0, 0, 0};    // informative: the output's size decides how far the window goes

  // Elements along an axis from the first to the last one that `outputs` outputs side by side read, padding included.
  int64_t span(size_t axis, int64_t outputs) const {
    return (outputs - 1) * stride[axis] + (filter[axis] - 1) * dilation[axis] + 1;
  }
  int64_t taps() const { return filter[0] * filter[1] * filter[2]; }
  bool is_pointwise() const { return taps() == 1 && pad_begin == Triple{0, 0, 0} && stride == Triple{1, 1, 1}; }
  template <class V>
  void visit(V& v) {
    v("filter", filter), v("stride", stride), v("dilation", dilation), v("pad", pad_begin), v("pad_end", pad_end);
  }
  friend bool operator==(const Window&, const Window&) = default;
};

// A batch of feature maps [N,C,spatial...] of any rank from 2 to 5 seen as N,C,D,H,W: sizes and strides in elements.
struct FeatureMap {
  int64_t n = 1, c = 1, d = 1, h = 1, w = 1;
  int64_t image_stride = 0, channel_stride = 0, plane_stride = 0, row_stride = 0, pixel_stride = 0;
  int64_t pixels() const { return d * h * w; }
};
FeatureMap feature_map(const TensorDesc& desc);
// Whether its channels lie side by side.
inline bool channels_innermost(const FeatureMap& m) { return m.c <= 1 || m.channel_stride == 1; }
inline bool channels_innermost(const TensorDesc& desc) { return channels_innermost(feature_map(desc)); }

}  // namespace sparkle
