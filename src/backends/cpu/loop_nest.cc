#include "backends/cpu/loop_nest.h"

#include <algorithm>
#include <cstdlib>

namespace sparkle::cpu {

LoopNest make_nest(const Dims& shape, std::span<const Dims> strides, size_t leader) {
  std::vector<int> axes;
  for (int i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back(i);
  const auto rank_of = [&](int axis) {
    const int64_t stride = std::abs(strides[leader][axis]);
    return stride == 0 ? INT64_MAX : stride;
  };
  std::sort(axes.begin(), axes.end(), [&](int a, int b) { return rank_of(a) != rank_of(b) ? rank_of(a) > rank_of(b) : a < b; });

  LoopNest nest;
  nest.strides.resize(strides.size());
  for (int axis : axes) {
    const int last = nest.rank() - 1;
    bool merges = last >= 0;
    for (size_t i = 0; merges && i < strides.size(); ++i) merges = nest.strides[i][last] == strides[i][axis] * shape[axis];
    if (merges) {
      nest.size[last] *= shape[axis];
      for (size_t i = 0; i < strides.size(); ++i) nest.strides[i][last] = strides[i][axis];
    } else {
      nest.size.push_back(shape[axis]);
      for (size_t i = 0; i < strides.size(); ++i) nest.strides[i].push_back(strides[i][axis]);
    }
  }
  if (nest.rank() == 0) {
    nest.size.push_back(1);
    for (Dims& strides : nest.strides) strides.push_back(1);
  }
  return nest;
}

}  // namespace sparkle::cpu
