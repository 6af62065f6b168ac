#include "backends/cpu/gemm/gemm_pack.h"

#include <algorithm>

#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

// One row of a panel: columns that exist, then zeros.
void pack_row(const float* from, int64_t stride, int64_t columns, int64_t width, float* to) {
  if (stride == 1) {
    std::copy(from, from + columns, to);
  } else {
    for (int64_t j = 0; j < columns; ++j) to[j] = from[j * stride];
  }
  std::fill(to + columns, to + width, 0.0f);
}

void pack_panel(const GemmWeights& w, const TileKernels& tiles, const float* from, int64_t columns, int64_t width,
                std::byte* to) {
  float row[kMaxTileVectors * kMaxLanes];
  for_each_tap(w, from, [&](const float* tap) {
    for (int64_t c = 0; c < w.k_count[3]; ++c, tap += w.k_strides[3], to += width * tiles.weight_bytes) {
      if (!tiles.narrow) {
        pack_row(tap, w.n_stride, columns, width, reinterpret_cast<float*>(to));
      } else {
        pack_row(tap, w.n_stride, columns, width, row);
        tiles.narrow(row, to, width);
      }
    }
  });
}

// One column after another.
void pack_columns(const GemmWeights& w, const float* from, int64_t columns, float* to) {
  for (int64_t j = 0; j < columns; ++j)
    for_each_tap(w, from + j * w.n_stride, [&](const float* tap) {
      for (int64_t c = 0; c < w.k_count[3]; ++c) *to++ = tap[c * w.k_strides[3]];
    });
}

}  // namespace

void pack_weights(const GemmGeometry& g, const TileKernels& tiles, const float* weights, void* packed, Executor& executor) {
  const int64_t panels = static_cast<int64_t>(g.panels.size());
  const int64_t total = g.weights.matrices * panels;
  const auto pack_one = [&](int64_t index) {
    const GemmPanel& panel = g.panels[static_cast<size_t>(index % panels)];
    const int64_t matrix = index / panels;
    const int64_t offset = panel.column * g.weights.n_stride + g.weights.matrix_at(matrix);
    std::byte* to = static_cast<std::byte*>(packed) + panel_at(g, tiles, matrix, panel);
    if (tiles.columns_apart) return pack_columns(g.weights, weights + offset, panel.columns, reinterpret_cast<float*>(to));
    pack_panel(g.weights, tiles, weights + offset, panel.columns, panel.vectors * tiles.lanes, to);
  };
  // A task moves at least 64 KB: less is not worth a thread's attention.
  const int64_t tasks = moving_tasks(4 * g.weights.matrices * g.padded_n * g.k, total, executor.width());
  for_each_range(executor, total, tasks, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pack_one(i);
  });
}

void copy_left(const GemmGeometry& g, const float* a, float* copy, Executor& executor) {
  const std::vector<CopyAxis>& axes = g.copy_a;
  const CopyAxis k = axes.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < axes.size(); ++i) rows *= axes[i].count;
  // Neighbouring rows often lie next to each other where k does not: blocks of 16 rows use whole cache lines.
  constexpr int64_t kBlock = 16;
  const int64_t blocks = (rows + kBlock - 1) / kBlock;
  const int64_t tasks = moving_tasks(4 * rows * k.count, blocks, executor.width());
  for_each_range(executor, blocks, tasks, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock, count = std::min(kBlock, rows - first);
      const float* from[kBlock];
      float* to[kBlock];
      for (int64_t j = 0; j < count; ++j) {
        int64_t rest = first + j, from_at = 0, to_at = 0;
        for (size_t i = axes.size() - 1; i-- > 0; rest /= axes[i].count) {
          from_at += rest % axes[i].count * axes[i].from;
          to_at += rest % axes[i].count * axes[i].to;
        }
        from[j] = a + from_at;
        to[j] = copy + to_at;
      }
      for (int64_t i = 0; i < k.count; ++i)
        for (int64_t j = 0; j < count; ++j) to[j][i] = from[j][i * k.from];
    }
  });
}

}  // namespace sparkle::cpu
