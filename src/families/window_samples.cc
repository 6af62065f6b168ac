#include "families/window_samples.h"

#include <algorithm>

#include "families/epilogue.h"
#include "families/window.h"

namespace sparkle {

void add_epilogue_operands(Stage& stage, const Epilogue& e, int64_t channels, int axis) {
  for (int i = 0; i < e.scale + e.bias; ++i) stage.inputs.push_back(dense_desc(DType::f32, {channels}));
  for (int i = 0; i < e.residuals(); ++i) stage.inputs.push_back(stage.outputs[0]);
  // Of what a tail reads every other one is a number per channel.
  for (int i = 0; i < e.tail_operands(); ++i) {
    stage.inputs.push_back(stage.outputs[0]);
    for (int a = 0; i % 2 == 0 && a < stage.outputs[0].shape.size(); ++a)
      if (a != axis) stage.inputs.back().layout.pitch[a] = 0;
  }
}

Stage window_sample(const StageParams& params, const Window& w, const Epilogue* e, int64_t groups, bool depthwise, int64_t wide,
                    int64_t gap) {
  Stage stage;
  stage.params = params;
  const int64_t channels = depthwise ? wide : groups * wide, filters = depthwise ? wide : groups * (wide + 4);
  Dims x{2, channels}, y{2, filters}, f{filters, depthwise ? 1 : wide};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t out = i == 0 ? 1 : 4 + static_cast<int64_t>(i);
    const int64_t in = std::max<int64_t>(
        1, (out - 1) * w.stride[i] + (w.filter[i] - 1) * w.dilation[i] + 1 - w.pad_begin[i] - (i == 0 ? 0 : 1));
    x.push_back(in), y.push_back(out), f.push_back(w.filter[i]);
  }
  stage.inputs.push_back(described(DType::f32, x, true, gap));
  stage.outputs.push_back(described(DType::f32, y, true, gap));
  if (e) {
    stage.inputs.push_back(dense_desc(DType::f32, f));
    add_epilogue_operands(stage, *e, filters, 1);
  }
  return stage;
}

}  // namespace sparkle
