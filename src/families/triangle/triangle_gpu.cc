#include "families/triangle/triangle_gpu.h"

#include <algorithm>

#include "families/triangle/triangle.h"

namespace sparkle {

// Along columns a move steps towards the upper triangle, along rows away from it.
TriangleMove triangle_move(const Stage& stage) {
  const auto& p = get<TriangleParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  const int64_t element = size_of(y.dtype), up = p.upper ? 1 : -1;
  const int rank = y.shape.size();
  std::vector<ChunkAxis> axes;
  for (int i = 0; i < rank; ++i)
    axes.push_back({y.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element,
                    i == rank - 1   ? up
                    : i == rank - 2 ? -up
                                    : 0});
  TriangleMove move;
  move.chunks = chunk_move(std::move(axes), element, x.layout.offset * element, y.layout.offset * element);
  move.fits_31_bits = move.chunks.fits_31_bits() && extent(x.shape, x.layout) <= INT32_MAX;
  // The diagonal may be any 64-bit number; the matrix' ends are as far as it reaches.
  const int64_t reach = std::min<int64_t>(INT32_MAX, y.shape[rank - 2] + y.shape[rank - 1]);
  move.least = up * std::clamp(p.diagonal, -reach, reach);
  return move;
}

}  // namespace sparkle
