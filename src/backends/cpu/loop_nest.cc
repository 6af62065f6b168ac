#include "backends/cpu/loop_nest.h"

#include <algorithm>
#include <cstdlib>

namespace sparkle::cpu {

LoopNest make_nest(const Dims& shape, std::span<const Dims> pitches, size_t leader) {
  std::vector<int> axes;
  for (int i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back(i);
  const auto rank_of = [&](int axis) {
    const int64_t pitch = std::abs(pitches[leader][axis]);
    return pitch == 0 ? INT64_MAX : pitch;
  };
  std::sort(axes.begin(), axes.end(), [&](int a, int b) { return rank_of(a) != rank_of(b) ? rank_of(a) > rank_of(b) : a < b; });

  LoopNest nest;
  nest.pitch.resize(pitches.size());
  for (int axis : axes) {
    const int last = nest.rank() - 1;
    bool merges = last >= 0;
    for (size_t i = 0; merges && i < pitches.size(); ++i) merges = nest.pitch[i][last] == pitches[i][axis] * shape[axis];
    if (merges) {
      nest.size[last] *= shape[axis];
      for (size_t i = 0; i < pitches.size(); ++i) nest.pitch[i][last] = pitches[i][axis];
    } else {
      nest.size.push_back(shape[axis]);
      for (size_t i = 0; i < pitches.size(); ++i) nest.pitch[i].push_back(pitches[i][axis]);
    }
  }
  if (nest.rank() == 0) {
    nest.size.push_back(1);
    for (Dims& pitch : nest.pitch) pitch.push_back(1);
  }
  return nest;
}

}  // namespace sparkle::cpu
