// Operators that look for places (ArgMax, TopK, NonMaxSuppression), read or write at places (GatherElements, GatherND,
// Scatter*, OneHot), run along an axis (CumSum) or keep a part (Trilu, CenterCropPad), and Einsum, which becomes other
// operators.
#pragma once

#include <string>

#include "base/dims.h"
#include "families/scatter/scatter.h"

namespace sparkle {

// Inputs: x. ArgMax, or ArgMin where `smallest`.
struct ArgOp {
  bool smallest = false;
  int64_t axis = 0;
  bool keep_dims = true;
  bool last = false;  // of equal elements the last one
};
// Inputs: x, k? (constant). Outputs: values, indices, best first.
struct TopKOp {
  int64_t axis = -1;
  int64_t k = -1;  // [resolved]
  bool largest = true;
};
// Inputs: x, axis (constant).
struct CumSumOp {
  int64_t axis = 0;  // [resolved]
  bool exclusive = false, reverse = false;
};
// Inputs: x, k? (constant).
struct TriluOp {
  bool upper = true;
  int64_t diagonal = 0;  // [resolved]
};
// Inputs: x, indices.
struct GatherElementsOp {
  int64_t axis = 0;
};
// Inputs: x, indices.
struct GatherNDOp {
  int64_t batch_axes = 0;
};
// Inputs: data, indices, updates.
struct ScatterElementsOp {
  int64_t axis = 0;
  ScatterReduction reduction = ScatterReduction::none;
};
// Inputs: data, indices, updates.
struct ScatterNDOp {
  ScatterReduction reduction = ScatterReduction::none;
};
// Inputs: indices, depth (constant), values (off, on); once resolved: indices, values.
struct OneHotOp {
  int64_t axis = -1;
  int64_t depth = -1;  // [resolved]
};
// Inputs: x, shape (constant).
struct CenterCropPadOp {
  Dims axes, target;   // [resolved] target: the output's shape
  bool given = false;  // whether target is resolved
};
// Inputs: any number. bind() writes it as transpositions, reductions and products.
struct EinsumOp {
  std::string equation;
};
// Inputs: boxes, scores, most?, overlap?, threshold? (constants). The output holds as many rows as the data has; shapes take
// the largest number (GraphTensor::open).
struct NonMaxSuppressionOp {
  bool centers = false;
  int64_t most = 0;                   // [resolved] boxes per image and class
  double overlap = 0, threshold = 0;  // [resolved]
  bool has_threshold = false;
};

}  // namespace sparkle
