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
// visit(weights of channel 0) for each tap of the filter, in the order of k.
template <class Visit>
void for_each_tap(const GemmWeights& w, const float* from, Visit&& visit) {
  for (int64_t t = 0; t < w.k_count[0]; ++t)
    for (int64_t r = 0; r < w.k_count[1]; ++r)
      for (int64_t s = 0; s < w.k_count[2]; ++s) visit(from + t * w.k_strides[0] + r * w.k_strides[1] + s * w.k_strides[2]);
}
// `weights` points at element (0,...,0); they are packed in the type that the tiles read.
void pack_weights(const GemmGeometry& g, const TileKernels& tiles, const float* weights, void* packed, Executor& executor);
// Copies the left operand so that its k is contiguous.
void copy_left(const GemmGeometry& g, const float* a, float* copy, Executor& executor);

}  // namespace sparkle::cpu
