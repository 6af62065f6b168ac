#include "backends/cuda/stages/windows.h"

#include "backends/cuda/stages/moves/moves.h"

namespace sparkle::cuda {
namespace {

void fill(int32_t (&to)[3], const Triple& t) {
  for (size_t i = 0; i < 3; ++i) to[i] = static_cast<int32_t>(t[i]);
}

}  // namespace

void set_strides(int32_t (&to)[4], const FeatureMap& m) {
  const int64_t strides[4] = {m.image_stride, m.plane_stride, m.row_stride, m.pixel_stride};
  for (size_t i = 0; i < 4; ++i) to[i] = static_cast<int32_t>(strides[i]);
}

Result<WindowRecord> window_record(const Stage& stage, const Window& window, int width) {
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > INT32_MAX || d.elements() > INT32_MAX) return too_far(name_of(stage.family()));
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  WindowRecord r;
  r.count = static_cast<uint32_t>(stage.outputs[0].elements() / width);
  r.channels = divisor_of(y.c / width), r.d = divisor_of(y.d), r.h = divisor_of(y.h), r.w_size = divisor_of(y.w);
  fill(r.x_size, {x.d, x.h, x.w});
  set_strides(r.x_strides, x);
  set_strides(r.y_strides, y);
  r.x_channel = static_cast<int32_t>(x.channel_stride), r.y_channel = static_cast<int32_t>(y.channel_stride);
  if (width > 1) r.x_channel = r.y_channel = 1;
  fill(r.filter, window.filter);
  fill(r.stride, window.stride);
  fill(r.dilation, window.dilation);
  fill(r.pad, window.pad_begin);
  fill(r.pad_end, window.pad_end);
  r.planes = width == 1 && x.channel_stride != 1;
  r.type = static_cast<uint8_t>(stage.outputs[0].dtype);
  return r;
}

}  // namespace sparkle::cuda
