// The tiles and panels of a gemm stage cut into blocks as its schedule says: the kernel runs these blocks, one after another in
// a task, and the tests' counted walk goes through them.
#pragma once

#include <algorithm>

#include "backends/cpu/gemm/gemm_geometry.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "base/round_up.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

// Partial sums of one block live on the worker's stack: 96 KB, a tenth of the smallest L2 that matters.
inline constexpr int64_t kPartialFloats = 24576;
// Of one register tile.
inline int64_t partial_floats(int64_t lanes) { return kMaxTileRows * kMaxTileVectors * lanes; }

// Tiles [t0, t1) by panels [p0, p1) of an instance.
struct GemmBlock {
  int64_t instance, t0, t1, p0, p1;
  bool onward;  // the block after the last of its tiles goes on with the next panels
};

struct GemmCut {
  int64_t instances = 1, tiles = 1, panels = 1;
  int64_t row_blocks = 1, column_blocks = 1;  // of each instance
  bool panels_inside = true;                  // a block of rows passes all panels before the next one starts
  bool rows_outside = false;                  // blocks of rows that the schedule asks for

  int64_t blocks() const { return instances * row_blocks * column_blocks; }
  // The outer loop of the order is the outer loop of the blocks too; blocks of rows that a schedule asks for are outside of the
  // instances as well.
  GemmBlock block(int64_t i) const {
    int64_t instance = i / (row_blocks * column_blocks);
    int64_t row = i % (row_blocks * column_blocks), column = 0;
    if (rows_outside) {
      column = i % column_blocks, instance = i / column_blocks % instances, row = i / (column_blocks * instances);
    } else if (panels_inside) {
      column = row % column_blocks, row /= column_blocks;
    } else {
      column = row / row_blocks, row %= row_blocks;
    }
    return {instance,
            row * tiles / row_blocks,
            (row + 1) * tiles / row_blocks,
            column * panels / column_blocks,
            (column + 1) * panels / column_blocks,
            (panels_inside || row + 1 == row_blocks) && column + 1 < column_blocks};
  }
};

// Into how many blocks `tiles` are cut: `enough` or a few more, such that all threads end together. Each block of tiles comes
// `times` times.
inline int64_t even_blocks(int64_t tiles, int64_t enough, int64_t times, int64_t threads) {
  int64_t best = std::min(enough, tiles), least = 0;
  for (int64_t blocks = best; blocks <= std::min(tiles, enough + threads); ++blocks) {
    const int64_t longest = divided(blocks * times, threads) * divided(tiles, blocks);  // tiles of the busiest thread
    if (least == 0 || longest < least) best = blocks, least = longest;
  }
  return best;
}

// As the schedule says, finer along `split` until there is a block for each of the `wanted` tasks of `width` workers.
inline GemmCut gemm_cut(const GemmGeometry& g, const GemmSchedule& schedule, int64_t lanes, int64_t wanted, int64_t width) {
  const bool rows_first = schedule.order == GemmOrder::rows;
  GemmCut cut;
  cut.instances = static_cast<int64_t>(g.instances.size()), cut.panels = static_cast<int64_t>(g.panels.size());
  cut.tiles = g.tiles;
  cut.rows_outside = rows_first && schedule.mc > 0;
  cut.panels_inside = rows_first || (schedule.mc > 0 && g.chunks == 1);
  int64_t block_tiles = schedule.mc > 0 ? divided(schedule.mc, schedule.mr) : cut.tiles;
  int64_t block_panels = rows_first ? cut.panels : 1;
  block_tiles = std::clamp<int64_t>(block_tiles, 1, cut.tiles);
  if (g.chunks > 1) {  // partial sums fit their place
    if (rows_first) block_panels = std::min(block_panels, kPartialFloats / partial_floats(lanes));
    block_tiles = std::min(block_tiles, kPartialFloats / (partial_floats(lanes) * (rows_first ? block_panels : 1)));
  }
  if (schedule.split != 0) {
    const int64_t enough = divided(wanted, cut.instances * divided(cut.tiles, block_tiles));
    block_panels = std::min(block_panels, divided(cut.panels, enough));
  }
  cut.column_blocks = divided(cut.panels, block_panels);
  cut.row_blocks = divided(cut.tiles, block_tiles);
  const int64_t times = cut.instances * cut.column_blocks;
  if (schedule.split != 1 && times * cut.row_blocks < wanted)
    cut.row_blocks = even_blocks(cut.tiles, divided(wanted, times), times, width);
  return cut;
}

}  // namespace sparkle::cpu
