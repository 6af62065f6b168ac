// The inverted family: a block of convolutions in one step, so that the wide plane between them never leaves the caches:
//   x -> [1x1 expand, activation] -> depthwise, activation -> 1x1 project, activation -> y
// (Sandler et al.: MobileNetV2, 2018). Without `expand` x is the wide plane itself (depthwise separable layers).
// Operands: x [N,C,H,W]; expand: w [E,C,1,1], bias; depthwise: w [E,1,R,S], bias; project: w [K,E,1,1], bias, residual -> y
// [N,K,P,Q]. Biases and the residual are there where the part's epilogue says so; the wide plane is zero outside of the image.
#pragma once

#include "families/values/epilogue.h"
#include "families/windows/window.h"

namespace sparkle {

struct InvertedParams {
  bool expand = true;
  Window window;     // of the depthwise part
  Epilogue wide;     // of the expand part: bias, activation
  Epilogue deep;     // of the depthwise part: bias, activation
  Epilogue project;  // bias, one residual before or after the activation

  template <class V>
  void visit(V& v) {
    v("expand", expand), v("window", window), v("wide", wide), v("deep", deep), v("project", project);
  }
  friend bool operator==(const InvertedParams&, const InvertedParams&) = default;
};

struct InvertedSchedule {
  std::string variant = "rows6x4";  // a row of variants.inc
  std::string unit;                 // the math unit: "avx512", "avx2", ...
  int mr = 6;                       // pixels of the register tile
  int nr = 4;                       // vectors of wide channels that pass through the first two parts together
  int64_t rows = 2;                 // of the output, which go through all parts together
  int64_t tasks = 1;                // parts of an image's rows; each computes the wide rows that it shares with another

  template <class V>
  void visit(V& v) {
    v("variant", variant), v("unit", unit), v("mr", mr), v("nr", nr), v("rows", rows), v("tasks", tasks);
  }
  friend bool operator==(const InvertedSchedule&, const InvertedSchedule&) = default;
};

// Most rows of the output in one pass; with strides of 2 and filters of 5 they reach over 35 wide rows.
inline constexpr int64_t kMostInvertedRows = 16;

// Where the operands lie in the list; -1 for those that are not there.
struct InvertedOperands {
  int wide_weights = -1, wide_bias = -1, deep_weights = 1, deep_bias = -1, weights = 2, bias = -1, residual = -1;
  int count = 3;
};
InvertedOperands inverted_operands(const InvertedParams& params);

}  // namespace sparkle
