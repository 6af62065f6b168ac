// The direct family: convolutions of a few input channels, of the image or of each group. Their sums are so short that the
// fixed cost of a general product's tiles weighs, and one to eight maps leave most lanes of a vector of maps idle; so a whole
// row of outputs is computed in one call, with pixels or maps in the lanes, from input rows that lie padded in a scratch in the
// L1. Operands as those of a gemm with loader window: x [N,C,H,W], w [K,C/groups,R,S], epilogue operands -> y [N,K,P,Q].
#pragma once

#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

struct DirectParams {
  int64_t groups = 1;  // of channels and of maps
  Window window;
  Epilogue epilogue;

  template <class V>
  void visit(V& v) {
    v("groups", groups), v("window", window), v("epilogue", epilogue);
  }
  friend bool operator==(const DirectParams&, const DirectParams&) = default;
};

struct DirectSchedule {
  std::string variant = "maps";
  std::string unit;
  int maps = 4;         // of a register tile: vectors of maps, maps alone where pixels fill the lanes
  int pixels = 6;       // of a register tile: outputs of a row, vectors of them where they fill the lanes
  int64_t columns = 0;  // outputs of a row whose inputs lie in the scratch for all rows of the filter
  int64_t rows = 0;     // of outputs whose tiles lie together, which no task cuts; 0: all
  int prefetch = 0;     // maps: the next row of inputs that are read in place is fetched on the way into L2 (2); 0: not
  int64_t grain = 0;    // outputs per task (families/loops/grain.h)

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("maps", maps), v("pixels", pixels), v("columns", columns), v("rows", rows);
    v("prefetch", prefetch), v("grain", grain);
  }
  friend bool operator==(const DirectSchedule&, const DirectSchedule&) = default;
};

// What kernels hold: rows of a filter, input rows that a filter reaches over, floats of the scratch they lie in.
inline constexpr int kMostDirectRows = 16;
inline constexpr int64_t kMostDirectRing = 32, kDirectScratchFloats = 16 * 1024;
// Beyond so many input channels of a group sums are long enough for the general product: up to here 1x1 layers gained 2 to 24 %
// (Zen 4).
inline int64_t most_direct_channels(const Window& window) { return window.taps() == 1 ? 160 : 16; }

// Groups of few channels whose inputs are laid into the scratch together: those that share a cache line.
int64_t direct_bundle(int64_t groups, int64_t depth);

// An input row in the scratch, padded: channels of a pixel together or, `planes`, a plane per channel. Where pixels fill the
// lanes there is a plane per phase of the stride, so that outputs next to each other read inputs next to each other.
struct DirectRow {
  int64_t phase = 0;    // floats of a plane of one phase
  int64_t channel = 0;  // floats between channels
  int64_t column = 0;   // floats between columns, of one phase
  int64_t floats = 0;
};
DirectRow direct_row(const Window& window, int64_t channels, int64_t columns, int64_t lanes, int64_t phases, bool planes);

}  // namespace sparkle
