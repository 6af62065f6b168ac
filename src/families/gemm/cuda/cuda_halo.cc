#include "families/gemm/cuda/cuda_halo.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/gemm/gemm.h"

namespace sparkle {

std::optional<HaloTile> halo_tile(const Stage& stage) {
  constexpr int64_t kBox = 256;  // of a tensor map, along an axis
  const auto& p = get<GemmParams>(stage.params);
  const Window& w = p.window;
  if (p.loader != Loader::window || w.filter[0] != 1 || w.taps() < 2) return std::nullopt;
  for (const size_t axis : {1, 2})
    if (w.stride[axis] != 1 || w.pad_begin[axis] < 0) return std::nullopt;
  const FeatureMap y = feature_map(stage.outputs[0]);
  if (y.d != 1 || y.n * y.h * y.w == 0) return std::nullopt;
  const int64_t above = (w.filter[1] - 1) * w.dilation[1], beside = (w.filter[2] - 1) * w.dilation[2];
  HaloTile t;
  t.width = y.w + beside;
  t.rows = std::min(y.h, kCudaHaloColumns / t.width);
  t.box_rows = t.rows + above;
  if (t.rows < 1 || t.width > kBox || t.box_rows > kBox || t.box_rows * t.width > kCudaHaloPixels ||
      kCudaHaloColumns + above * t.width + beside > kCudaHaloPixels)
    return std::nullopt;
  t.of_image = divided(y.h, t.rows);
  t.all = y.n * t.of_image;
  return t;
}

}  // namespace sparkle
