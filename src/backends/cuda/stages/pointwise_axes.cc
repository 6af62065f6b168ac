#include "backends/cuda/stages/pointwise_axes.h"

#include <algorithm>
#include <cstdlib>

namespace sparkle::cuda {

std::vector<PointwiseAxis> merged_axes(const Stage& stage) {
  const TensorDesc& y = stage.outputs[0];
  std::vector<PointwiseAxis> axes;
  for (int i = 0; i < y.shape.size(); ++i) {
    if (y.shape[i] == 1) continue;
    PointwiseAxis axis{y.shape[i], {}};
    for (const TensorDesc& d : stage.inputs) axis.strides.push_back(d.layout.strides[i]);
    axis.strides.push_back(y.layout.strides[i]);
    axes.push_back(std::move(axis));
  }
  std::stable_sort(axes.begin(), axes.end(), [](const PointwiseAxis& a, const PointwiseAxis& b) {
    return std::abs(a.strides.back()) > std::abs(b.strides.back());
  });
  for (size_t i = axes.size(); i-- > 1;) {
    PointwiseAxis &outer = axes[i - 1], &inner = axes[i];
    bool whole = true;
    for (size_t k = 0; k < inner.strides.size(); ++k) whole = whole && outer.strides[k] == inner.strides[k] * inner.size;
    if (!whole) continue;
    inner.size *= outer.size;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
  return axes;
}

}  // namespace sparkle::cuda
