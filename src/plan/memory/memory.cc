#include "plan/memory/memory.h"

#include <algorithm>
#include <numeric>

namespace sparkle {

int64_t place_buffers(std::vector<BufferLife>& buffers) {
  constexpr int64_t kAlign = 64;
  std::vector<size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<size_t> placed;  // sorted by offset
  int64_t arena = 0;
  for (size_t index : by_size) {
    BufferLife& b = buffers[index];
    const int64_t need = (b.bytes + kAlign - 1) / kAlign * kAlign;
    int64_t at = 0;
    for (size_t other : placed) {
      const BufferLife& o = buffers[other];
      if (o.last < b.first || b.last < o.first) continue;
      if (o.offset >= at + need) break;
      at = std::max(at, (o.offset + o.bytes + kAlign - 1) / kAlign * kAlign);
    }
    b.offset = at;
    arena = std::max(arena, at + need);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                   [&](size_t x, size_t y) { return buffers[x].offset < buffers[y].offset; }),
                  index);
  }
  return arena;
}

}  // namespace sparkle
