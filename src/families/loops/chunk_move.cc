#include "families/loops/chunk_move.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "families/windows/window.h"

namespace sparkle {
namespace {

void merge(std::vector<ChunkAxis>& axes) {
  for (size_t i = axes.size(); i-- > 1;) {
    ChunkAxis &outer = axes[i - 1], &inner = axes[i];
    if (outer.axis >= 0 || inner.axis >= 0) continue;
    if (outer.x != inner.x * inner.size || outer.y != inner.y * inner.size || outer.other != inner.other * inner.size ||
        outer.order != inner.order * inner.size)
      continue;
    inner.size *= outer.size;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
}

int64_t lowest(const std::vector<ChunkAxis>& axes, int64_t ChunkAxis::* stride) {
  int64_t at = 0;
  for (const ChunkAxis& a : axes) at += std::min<int64_t>(0, (a.size - 1) * (a.*stride));
  return at;
}
// Chunks from the lowest to the highest place; saturated where numbers end.
bool spans_31_bits(const std::vector<ChunkAxis>& axes, int64_t ChunkAxis::* stride) {
  int64_t reach = 0;
  for (const ChunkAxis& a : axes) {
    int64_t part = 0;
    if (__builtin_mul_overflow(a.size - 1, std::abs(a.*stride), &part) || __builtin_add_overflow(reach, part, &reach))
      return false;
  }
  return reach < std::numeric_limits<int32_t>::max();
}

}  // namespace

int64_t ChunkMove::count() const {
  int64_t n = 1;
  for (const ChunkAxis& a : axes) n *= a.size;
  return n;
}
bool ChunkMove::fits_31_bits() const {
  int64_t n = 1;
  for (const ChunkAxis& a : axes)
    if (__builtin_mul_overflow(n, a.size, &n)) return false;
  return n < std::numeric_limits<int32_t>::max() && spans_31_bits(axes, &ChunkAxis::x) && spans_31_bits(axes, &ChunkAxis::y) &&
         spans_31_bits(axes, &ChunkAxis::other);
}
int64_t ChunkMove::lowest_x() const { return lowest(axes, &ChunkAxis::x); }
int64_t ChunkMove::lowest_y() const { return lowest(axes, &ChunkAxis::y); }

ChunkMove chunk_move(std::vector<ChunkAxis> axes, int64_t element, int64_t x_offset, int64_t y_offset, int64_t widest) {
  std::erase_if(axes, [](const ChunkAxis& a) { return a.size == 1 && a.axis < 0; });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const ChunkAxis& a, const ChunkAxis& b) { return std::abs(a.y) > std::abs(b.y); });
  merge(axes);
  ChunkMove move{element, std::move(axes)};
  // The axis along which elements lie side by side in both.
  const auto run = std::find_if(move.axes.begin(), move.axes.end(), [&](const ChunkAxis& a) {
    return a.axis < 0 && a.x == element && a.y == element && a.other == 0 && a.order == 0;
  });
  if (run != move.axes.end()) {
    const auto keeps_whole = [&](int64_t chunk) {
      return x_offset % chunk == 0 && y_offset % chunk == 0 && run->size * element % chunk == 0 &&
             std::all_of(move.axes.begin(), move.axes.end(),
                         [&](const ChunkAxis& a) { return &a == &*run || (a.x % chunk == 0 && a.y % chunk == 0); });
    };
    while (move.bytes < widest && keeps_whole(2 * move.bytes)) move.bytes *= 2;
    run->size = run->size * element / move.bytes;
    run->x = run->y = move.bytes;
    if (run->size == 1) move.axes.erase(run);
  }
  for (ChunkAxis& a : move.axes) a.x /= move.bytes, a.y /= move.bytes;
  return move;
}

ChunkMove chunk_move(const TensorDesc& x, const TensorDesc& y) {
  const int64_t element = size_of(y.dtype);
  std::vector<ChunkAxis> axes;
  for (int i = 0; i < y.shape.size(); ++i)
    axes.push_back({y.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element, 0, -1});
  return chunk_move(std::move(axes), element, x.layout.offset * element, y.layout.offset * element);
}

Transposition transposition(const ChunkMove& move) {
  Transposition t;
  for (size_t i = 0; i < move.axes.size(); ++i) {
    if (move.axes[i].x == 1 && t.a < 0) t.a = static_cast<int>(i);
    if (move.axes[i].y == 1) t.b = static_cast<int>(i);
  }
  return t;
}

bool channels_in_vec4(const TensorDesc& desc) {
  const FeatureMap m = feature_map(desc);
  if (m.c % 4 != 0 || (m.c > 1 && m.channel_stride != 1) || desc.layout.offset % 4 != 0) return false;
  const std::pair<int64_t, int64_t> axes[] = {
      {m.n, m.image_stride}, {m.d, m.plane_stride}, {m.h, m.row_stride}, {m.w, m.pixel_stride}};
  return std::all_of(std::begin(axes), std::end(axes), [](const auto& a) { return a.first == 1 || a.second % 4 == 0; });
}

}  // namespace sparkle
