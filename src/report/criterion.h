// By what the tensors of two runs count as the same, said in words beside each verdict: what `verify`, `compare` and
// `bench --against` go by.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"
#include "report/compare.h"

namespace sparkle {

struct Criterion {
  bool network = false;              // more than an operator or a few: wider tolerances
  bool quantized = false;            // of a network: floats behind 8-bit integers are compared by their direction
  std::optional<double> atol, rtol;  // the caller's: each in the place of its own term; compare_direction() is not taken

  Comparison compare(const HostTensor& actual, const HostTensor& expected) const;
  // "f32: |a-b| <= 1e-05 max|b| + 0.001 |b|".
  std::string text(DType dtype) const;

 private:
  bool by_direction(DType dtype) const { return quantized && is_float(dtype) && !atol && !rtol; }
  Tolerance tolerance(DType dtype) const;
};

// What fits the contents of a model: up to ten operators count as a test of an operator.
Criterion criterion_for(const Graph& graph);

}  // namespace sparkle
