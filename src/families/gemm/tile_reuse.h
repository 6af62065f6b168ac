// What the tiles of a product on a GPU read past the cache that all cores share. Workgroups start in the order of their tiles,
// those of one row of tiles first, and those that run at once go through k in step: a wave.
#pragma once

namespace sparkle {

struct TileWaves {
  double tiles_m = 1, tiles_n = 1;
  double at_once = 1;          // workgroups of a wave
  double left = 0, right = 0;  // bytes of both operands, each once
  double gathered = 0;         // bytes of the left operand, a window's pixels for each of its taps
  double border = 0;           // bytes of the left operand that a row of tiles shares with the next
  double taps_h = 1, taps_w = 1, stride_h = 1, stride_w = 1;  // of the window
};

// Bytes of both operands that a cache of this size, which replaces what was used longest ago, asks the next level for.
// tile_reuse_test.cc compares with a replay of all reads.
double bytes_past_cache(const TileWaves& waves, double cache);

}  // namespace sparkle
