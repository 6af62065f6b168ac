#include "families/sample/sample_gpu.h"

#include <algorithm>
#include <cstdlib>

#include "base/round_up.h"

namespace sparkle {

// Positions outside are told apart by numbers of up to twice an axis.
constexpr int64_t kLongest = 1 << 29;

SampleWalk sample_walk(const Stage& stage) {
  const TensorDesc &x = stage.inputs[0], &grid = stage.inputs[1], &y = stage.outputs[0];
  const int spatial = x.shape.size() - 2;
  SampleWalk walk;
  walk.groups = divided(y.shape[1], kSampleChannels);
  walk.count = y.shape[0] * walk.groups;
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(kSampleSpatial - spatial + i);
    walk.count *= y.shape[2 + i];
    walk.fits_31_bits = walk.fits_31_bits && x.shape[2 + i] < kLongest;
    walk.elements[at] = x.shape[2 + i];
    walk.strides[at] = x.layout.strides[2 + i];
  }
  for (const TensorDesc* desc : {&x, &grid, &y})
    walk.fits_31_bits = walk.fits_31_bits && extent(desc->shape, desc->layout) <= INT32_MAX;
  walk.fits_31_bits = walk.fits_31_bits && walk.count <= INT32_MAX;
  const auto add = [&](int axis) {
    const int64_t size = axis == 1 ? walk.groups : y.shape[axis];
    if (size == 1) return;
    if (axis == 1) walk.channel_axis = static_cast<int>(walk.axes.size());
    walk.axes.push_back({size, axis < 2 ? x.layout.strides[axis] : 0,
                         axis == 1 ? 0 : grid.layout.strides[axis == 0 ? 0 : axis - 1], y.layout.strides[axis]});
  };
  const bool channels_first = std::abs(y.layout.strides[1]) <= std::abs(y.layout.strides[spatial + 1]);
  if (channels_first) add(1);
  for (int axis = spatial + 1; axis >= 2; --axis) add(axis);
  if (!channels_first) add(1);
  add(0);
  return walk;
}

}  // namespace sparkle
