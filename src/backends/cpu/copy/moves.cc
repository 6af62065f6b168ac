#include "backends/cpu/copy/moves.h"
#include "families/loops/grain.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sparkle::cpu {

std::vector<MoveAxis> move_axes(const Dims& shape, const Layout& x, const Layout& y, int64_t element) {
  std::vector<MoveAxis> axes;
  for (int i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back({shape[i], x.strides[i] * element, y.strides[i] * element});
  std::sort(axes.begin(), axes.end(), [](const MoveAxis& a, const MoveAxis& b) { return std::abs(a.y) > std::abs(b.y); });
  return axes;
}

void merge_axes(std::vector<MoveAxis>& axes) {
  for (size_t i = axes.size(); i-- > 1;) {
    MoveAxis &outer = axes[i - 1], &inner = axes[i];
    if (outer.x != inner.x * inner.size || outer.y != inner.y * inner.size) continue;
    outer = {outer.size * inner.size, inner.x, inner.y};
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

int64_t take_run(std::vector<MoveAxis>& axes, int64_t element) {
  while (!axes.empty() && axes.back().x == element && axes.back().y == element) {
    element *= axes.back().size;
    axes.pop_back();
  }
  return element;
}

int64_t count_of(const std::vector<MoveAxis>& axes) {
  int64_t count = 1;
  for (const MoveAxis& axis : axes) count *= axis.size;
  return count;
}

bool beyond_caches(const Device& device, int64_t bytes) {
  if (device.memory.size() < 2) return false;
  const int64_t cache = device.memory[device.memory.size() - 2].bytes;
  return cache > 0 && bytes > cache;
}

int tasks_for(const LoopSchedule& schedule, const Executor& executor, int64_t items, int64_t bytes, int64_t element) {
  return static_cast<int>(tasks_of(schedule.grain, bytes / element, items, executor.width()));
}

uint64_t pattern_of(const std::byte* element, int64_t bytes) {
  std::array<std::byte, 8> pattern{};
  for (int64_t i = 0; i < 8; i += bytes) std::memcpy(pattern.data() + i, element, static_cast<size_t>(bytes));
  uint64_t result;
  std::memcpy(&result, pattern.data(), sizeof result);
  return result;
}

}  // namespace sparkle::cpu
