// The reduce family: sums, means, extrema and norms over a set of axes.
// Operands: x -> y with the same rank, reduced axes of size 1 (dropping them is a change of view by the planner).
#pragma once

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

enum class ReduceKind : uint8_t { sum, mean, max, min, product, l1, l2, sum_square, log_sum, log_sum_exp };
std::string_view name_of(ReduceKind kind);
bool parse_name(std::string_view text, ReduceKind& kind);

struct ReduceParams {
  ReduceKind kind = ReduceKind::sum;
  Dims axes;  // not negative, ascending

  template <class V>
  void visit(V& v) {
    v("kind", kind), v("axes", axes);
  }
  friend bool operator==(const ReduceParams&, const ReduceParams&) = default;
};

}  // namespace sparkle
