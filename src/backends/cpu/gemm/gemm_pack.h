// Right operands of a gemm in panels: [matrix][panel][k][vectors of the panel], columns past the end filled with zeros, so
// that the micro-kernel reads whole vectors one after another.
#pragma once

#include "backends/cpu/gemm/gemm_geometry.h"
#include "base/executor.h"

namespace sparkle::cpu {

inline int64_t packed_floats(const GemmGeometry& g) { return g.weights.matrices * g.padded_n * g.k; }
inline const float* packed_panel(const GemmGeometry& g, const float* packed, int64_t matrix, const GemmPanel& panel) {
  return packed + (matrix * g.padded_n + panel.column) * g.k;
}
// `weights` points at element (0,...,0).
void pack_weights(const GemmGeometry& g, int64_t lanes, const float* weights, float* packed, Executor& executor);
// Copies the left operand so that its k is contiguous.
void copy_left(const GemmGeometry& g, const float* a, float* copy, Executor& executor);

}  // namespace sparkle::cpu
