// The triangle family: matrices (the last two axes) with zeros on one side of a diagonal. The upper triangle keeps column >=
// row + diagonal, the lower one column <= row + diagonal. Operands: x -> y, same type of any kind and shape.
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

struct TriangleParams {
  bool upper = true;
  int64_t diagonal = 0;

  template <class V>
  void visit(V& v) {
    v("upper", upper), v("diagonal", diagonal);
  }
  friend bool operator==(const TriangleParams&, const TriangleParams&) = default;
};

// The columns [begin, end) of a row that stay.
struct KeptColumns {
  int64_t begin = 0, end = 0;
};
KeptColumns kept_columns(const TriangleParams& params, int64_t row, int64_t columns);

}  // namespace sparkle
