// The depthwise family: a convolution in which every channel has filters of its own (groups = C, K = C * multiplier).
// Operands: x [N,C,spatial], w [K,1,filter], epilogue operands -> y [N,K,spatial].
#pragma once

#include <string>

#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

struct DepthwiseParams {
  Window window;
  Epilogue epilogue;

  template <class V>
  void visit(V& v) {
    v("window", window), v("epilogue", epilogue);
  }
  friend bool operator==(const DepthwiseParams&, const DepthwiseParams&) = default;
};

struct DepthwiseSchedule {
  std::string variant = "plain";
  std::string unit;
  int rows = 1;       // output rows of the register tile
  int columns = 1;    // output columns of the register tile
  int64_t grain = 0;  // elements of output per task of a CPU (families/loops/grain.h)

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("rows", rows), v("columns", columns), v("grain", grain);
  }
  friend bool operator==(const DepthwiseSchedule&, const DepthwiseSchedule&) = default;
};

struct Stage;
// The same sums as a gemm stage: a window in as many groups as there are channels.
Stage as_groups(const Stage& stage);

}  // namespace sparkle
