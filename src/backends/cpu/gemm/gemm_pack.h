// Right operands of a gemm in panels: [matrix][panel][k][vectors of the panel], columns past the end filled with zeros, so
// that the micro-kernel reads whole vectors one after another. Dot products along k get [matrix][panel][column][k].
#pragma once

#include <cstddef>

#include "backends/cpu/gemm/gemm_geometry.h"
#include "base/system/executor.h"

namespace sparkle::cpu {

inline int64_t panel_bytes(const GemmGeometry& g, const TileKernels& tiles) {
  return g.weights.matrices * g.padded_n * g.k * tiles.weight_bytes;
}
// Where a panel begins, in bytes.
inline int64_t panel_at(const GemmGeometry& g, const TileKernels& tiles, int64_t matrix, const GemmPanel& panel) {
  return (matrix * g.padded_n + panel.column) * g.k * tiles.weight_bytes;
}
// `weights` points at element (0,...,0); they are packed in the type that the tiles read.
void pack_weights(const GemmGeometry& g, const TileKernels& tiles, const float* weights, void* packed, Executor& executor);
// Copies the left operand so that its k is contiguous.
void copy_left(const GemmGeometry& g, const float* a, float* copy, Executor& executor);

}  // namespace sparkle::cpu
