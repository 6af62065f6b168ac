// The grouped family: convolutions with groups of a few channels each, as many filters as channels in a group. One vector holds
// several groups; their channels are spread over its lanes once per pixel and used by every tap, or permuted at each use.
// Operands: x [N,C,H,W], w [C,C/groups,R,S], epilogue operands -> y [N,C,P,Q].
#pragma once

#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

struct GroupedParams {
  int64_t groups = 1;
  Window window;
  Epilogue epilogue;

  template <class V>
  void visit(V& v) {
    v("groups", groups), v("window", window), v("epilogue", epilogue);
  }
  friend bool operator==(const GroupedParams&, const GroupedParams&) = default;
};

struct GroupedSchedule {
  std::string variant = "spread";
  std::string unit;
  int64_t columns = 0;  // outputs of a row whose inputs stay in the L1 for all rows of the filter
  int64_t rows = 0;     // of outputs whose tiles lie together, which no task cuts; 0: all
  int64_t grain = 0;    // outputs per task (families/loops/grain.h)

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("columns", columns), v("rows", rows);
    v("grain", grain);
  }
  friend bool operator==(const GroupedSchedule&, const GroupedSchedule&) = default;
};

// Rows of inputs that a kernel keeps spread; filters that reach over more are not supported.
inline constexpr int64_t kMostGroupedRing = 64;

}  // namespace sparkle
