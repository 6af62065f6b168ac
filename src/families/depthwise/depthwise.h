// The depthwise family: a convolution in which every channel has filters of its own (groups = C, K = C * multiplier).
// Operands: x [N,C,spatial], w [K,1,filter], epilogue operands -> y [N,K,spatial].
#pragma once

#include "families/epilogue.h"
#include "families/window.h"

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

}  // namespace sparkle
