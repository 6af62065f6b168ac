#include "families/windows/window_samples.h"

#include <algorithm>

#include "families/values/epilogue.h"

namespace sparkle {

void add_epilogue_operands(Stage& stage, const Epilogue& e, int64_t channels, int axis) {
  for (int i = 0; i < e.scale + e.bias; ++i) stage.inputs.push_back(dense_desc(DType::f32, {channels}));
  for (int i = 0; i < e.residuals(); ++i) stage.inputs.push_back(stage.outputs[0]);
  // Of what a post-op reads every other one is a number per channel.
  for (int i = 0; i < e.post_op_operands(); ++i) {
    stage.inputs.push_back(stage.outputs[0]);
    for (int a = 0; i % 2 == 0 && a < stage.outputs[0].shape.size(); ++a)
      if (a != axis) stage.inputs.back().layout.strides[a] = 0;
  }
}

Window small_window() {
  Window window;
  window.filter = {1, 3, 3}, window.pad_begin = window.pad_end = {0, 1, 1};
  return window;
}

int64_t products_of(const Stage& stage) { return stage.inputs[1].shape.product() / stage.inputs[1].shape[0]; }

Stage window_sample(const StageParams& params, const Window& w, const Epilogue* e, const WindowSample& sizes, int64_t gap) {
  Stage stage;
  stage.params = params;
  Dims x{2, sizes.channels}, y{2, sizes.filters}, f{sizes.filters, sizes.depth};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t out = i == 0 ? 1 : i == 1 ? 5 : sizes.columns;
    const int64_t in = std::max<int64_t>(
        1, (out - 1) * w.stride[i] + (w.filter[i] - 1) * w.dilation[i] + 1 - w.pad_begin[i] - (i == 0 ? 0 : 1));
    x.push_back(in), y.push_back(out), f.push_back(w.filter[i]);
  }
  stage.inputs.push_back(described(DType::f32, x, true, gap));
  stage.outputs.push_back(described(DType::f32, y, true, gap));
  if (e) {
    stage.inputs.push_back(dense_desc(DType::f32, f));
    add_epilogue_operands(stage, *e, sizes.filters, 1);
  }
  return stage;
}

Stage window_sample(const StageParams& params, const Window& w, const Epilogue* e, int64_t groups, bool depthwise, int64_t wide,
                    int64_t gap) {
  const WindowSample sizes{depthwise ? wide : groups * wide, depthwise ? wide : groups * (wide + 4), depthwise ? 1 : wide};
  return window_sample(params, w, e, sizes, gap);
}

}  // namespace sparkle
