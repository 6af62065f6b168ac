// The fft family: convolutions with large filters by fast Fourier transforms. The output is cut into tiles; a tile's inputs are
// transformed (overlap-save), multiplied by the transformed filters frequency by frequency, summed over the channels of a group
// and transformed back. Rows of tiles are transformed in both axes where the filter is higher than one row, else along the
// width alone. Operands as those of a gemm with loader window: x [N,C,H,W] or [N,C,W], w [K,C/groups,R,S] -> y [N,K,P,Q].
#pragma once

#include "families/values/epilogue.h"
#include "families/loops/tile_schedule.h"
#include "families/windows/window.h"

namespace sparkle {

struct FftParams {
  int64_t groups = 1;
  Window window;
  Epilogue epilogue;

  template <class V>
  void visit(V& v) {
    v("groups", groups), v("window", window), v("epilogue", epilogue);
  }
  friend bool operator==(const FftParams&, const FftParams&) = default;
};

struct FftSchedule {
  std::string variant = "channels";  // a row of variants.inc: what lies in the lanes of a vector
  std::string unit;                  // the math unit: "avx512", "avx2", ...
  int64_t rows = 1;                  // points of a transform along the height; 1: none
  int64_t columns = 64;              // points along the width
  int64_t strip = 1;                 // tiles that share a reading of the weights (variant channels, sums over channels)

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("rows", rows), v("columns", columns), v("strip", strip);
  }
  friend bool operator==(const FftSchedule&, const FftSchedule&) = default;
};

// On a GPU: a workgroup keeps pairs of planes in shared memory, each pair as the real and the imaginary parts of one transform.
struct FftTileSchedule {
  std::string variant = "whole";  // a row of variants.inc
  std::string unit;               // the math unit: "fma-f32"
  int64_t rows = 1;               // points of a transform along the height; 1: none
  int64_t columns = 64;           // points along the width
  int pairs = 1;                  // of a workgroup: neighbouring channels
  int threads = 64;               // of a workgroup
  TileSchedule product;           // of each frequency, for sums over channels

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("rows", rows), v("columns", columns), v("pairs", pairs), v("threads", threads);
    v("product", product);
  }
  friend bool operator==(const FftTileSchedule&, const FftTileSchedule&) = default;
};

}  // namespace sparkle
