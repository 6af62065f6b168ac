#include "report/criterion.h"

#include <algorithm>
#include <variant>

#include "graph/ops.h"

namespace sparkle {
namespace {

constexpr size_t kOperatorTest = 10;

bool is_quantized(const Graph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) {
    return std::holds_alternative<QuantizeOp>(op.params) || std::holds_alternative<QuantizedConvOp>(op.params);
  });
}

}  // namespace

Tolerance Criterion::tolerance(DType dtype) const {
  Tolerance t = tolerance_for(dtype, network);
  if (atol) t.absolute = *atol, t.of_largest = false;
  if (rtol) t.relative = *rtol;
  return t;
}

Comparison Criterion::compare(const HostTensor& actual, const HostTensor& expected) const {
  return by_direction(expected.dtype) ? compare_direction(actual, expected)
                                      : sparkle::compare(actual, expected, tolerance(expected.dtype));
}

std::string Criterion::text(DType dtype) const {
  const std::string type(name_of(dtype));
  if (by_direction(dtype)) return type + " behind 8-bit integers: the same largest element, cosine >= 0.98";
  return type + ": " + to_text(tolerance(dtype));
}

Criterion criterion_for(const Graph& graph) {
  Criterion criterion;
  criterion.network = graph.ops.size() > kOperatorTest;
  criterion.quantized = criterion.network && is_quantized(graph);
  return criterion;
}

}  // namespace sparkle
