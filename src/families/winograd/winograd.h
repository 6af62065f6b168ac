// The winograd family: 3x3 convolutions of stride 1 with fewer products. The output is cut into squares of `tile` x `tile`;
// each comes from (tile+2)^2 inputs by a transform, one product per point of the transform instead of 9 per output, and a
// transform back: 2.25 (tile 2), 4 (tile 4) and 5.06 (tile 6) times fewer products. Rounding errors grow with the tile.
// Operands as those of a gemm with loader window: x [N,C,H,W], w [K,C,3,3], epilogue operands -> y [N,K,P,Q].
// Source: Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, 2015.
#pragma once

#include <array>

#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

struct WinogradParams {
  int tile = 4;  // 2, 4 or 6
  Window window;
  Epilogue epilogue;

  template <class V>
  void visit(V& v) {
    v("tile", tile), v("window", window), v("epilogue", epilogue);
  }
  friend bool operator==(const WinogradParams&, const WinogradParams&) = default;
};

struct WinogradSchedule {
  std::string variant = "strip6x4";  // a row of variants.inc
  std::string unit;                  // the math unit: "avx512", "avx2", ...
  int mr = 6;                        // rows (tiles) of the register tile
  int nr = 4;                        // columns of the register tile, in vectors
  int64_t strip = 24;                // tiles that are transformed, multiplied and transformed back together
  int prefetch = 0;                  // the next weights are fetched on the way into L1 (1) or L2 (2); 0: not
  int64_t ranges = 1;                // of panels, tasks of their own: each transforms the strip's inputs anew

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("mr", mr), v("nr", nr), v("strip", strip), v("prefetch", prefetch);
    v("ranges", ranges);
  }
  friend bool operator==(const WinogradSchedule&, const WinogradSchedule&) = default;
};

// The transform of a tile size: it takes tile + 1 numbers (and infinity) as points of a polynomial. They decide how rounding
// errors grow: for tile 4 a pair of square roots errs four times less than the usual 1 and 2.
inline constexpr int kMostWinogradPoints = 8;
struct WinogradTransform {
  int tile = 0, points = 0;  // per axis; points = tile + 2, the last of them is infinity
  // What weights are multiplied by, once per axis; the inputs' and outputs' matrices are written out in the kernels.
  std::array<std::array<double, 3>, kMostWinogradPoints> filter{};
};
const WinogradTransform& winograd_transform(int tile);

}  // namespace sparkle
