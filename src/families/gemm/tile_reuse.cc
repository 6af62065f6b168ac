#include "families/gemm/tile_reuse.h"

#include <algorithm>
#include <cmath>

namespace sparkle {
namespace {

// Bytes of the left operand of so many rows of tiles, each once.
double strip_of(const TileWaves& w, double rows) { return std::min(w.left, w.left * rows / w.tiles_m + w.border); }

// The same as a wave asks for them: a pixel is seen by the taps of its row and by rows of taps further down, and stays in
// between where what passes does: a tap's pixels and weights, or those of the taps that see none of it.
double seen_by_wave(const TileWaves& w, double rows, double panel, double cache) {
  const double strip = strip_of(w, rows), gathered = w.gathered * rows / w.tiles_m, taps = w.taps_h * w.taps_w;
  const double between = std::min(taps, (w.stride_h - 1) * w.taps_w + w.stride_w);
  double seen = strip;
  if (strip + panel * between / taps > cache) seen = gathered * std::min(1.0, w.stride_w / w.taps_w);
  if (w.stride_w * (gathered + panel) / taps > cache) seen = gathered;
  return std::max(seen, strip);
}

}  // namespace

double bytes_past_cache(const TileWaves& w, double cache) {
  const double tiles = w.tiles_m * w.tiles_n, at_once = std::clamp(w.at_once, 1.0, tiles);
  // Rows and columns of tiles in a wave.
  const double rows = std::max(1.0, std::min(at_once / w.tiles_n, w.tiles_m)), columns = std::min(at_once, w.tiles_n);
  const double strip = strip_of(w, rows), panel = w.right * columns / w.tiles_n;
  const double waves = std::floor(tiles / at_once), rest = tiles - waves * at_once;
  if (columns >= w.tiles_n) {
    // A wave reads all columns; the next one finds them, and the border of its rows, where a wave's operands fit.
    if (waves + (rest > 0) > 1 && strip + panel <= cache) return w.left + w.right;
    double left = waves * seen_by_wave(w, rows, panel, cache), right = waves * w.right;
    if (rest > 0) {
      const double share = std::min(1.0, rest / w.tiles_n);
      left += seen_by_wave(w, rest / w.tiles_n, share * panel, cache), right += share * w.right;
    }
    return std::max(w.left, left) + right;
  }
  // Several waves make a row of tiles: they find its pixels where a wave's operands fit, and the next row its columns where all
  // do.
  const bool all_fit = w.right + strip <= cache;
  const double left = all_fit                  ? w.left
                      : strip + panel <= cache ? w.tiles_m * strip
                                               : w.tiles_m * w.tiles_n / columns * seen_by_wave(w, rows, panel, cache);
  return std::max(w.left, left) + (all_fit ? w.right : w.tiles_m * w.right);
}

}  // namespace sparkle
