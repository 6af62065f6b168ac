#include "families/quantize/channels.h"

#include <algorithm>
#include <vector>

namespace sparkle {

std::optional<ChannelRuns> channel_runs(const Stage& stage) {
  const TensorDesc& y = stage.outputs[0];
  ChannelRuns runs;
  for (size_t operand : {size_t{1}, size_t{2}}) {
    const TensorDesc& desc = stage.inputs[operand];
    for (int i = 0; i < desc.shape.size(); ++i) {
      if (desc.shape[i] <= 1 || desc.layout.strides[i] == 0) continue;
      if (i >= y.shape.size() || (runs.axis >= 0 && runs.axis != i)) return std::nullopt;
      runs.axis = i;
    }
  }
  const int64_t elements = y.elements();
  if (runs.axis < 0) {
    runs.inner = elements;
  } else if (elements == 0) {
    runs.outer = 0;
  } else {
    // Dense: the stride of an axis is the number of elements inside of it.
    runs.channels = y.shape[runs.axis], runs.inner = y.layout.strides[runs.axis];
    runs.outer = elements / (runs.channels * runs.inner);
  }
  return runs;
}

int64_t common_run(const TensorDesc& x, const TensorDesc& y) {
  std::vector<int> axes;
  for (int i = 0; i < y.shape.size(); ++i)
    if (y.shape[i] > 1) axes.push_back(i);
  std::sort(axes.begin(), axes.end(), [&](int a, int b) { return y.layout.strides[a] < y.layout.strides[b]; });
  int64_t run = 1;
  for (int i : axes) {
    if (x.layout.strides[i] != run || y.layout.strides[i] != run) return i == axes[0] ? 0 : run;
    run *= y.shape[i];
  }
  return run;
}

}  // namespace sparkle
