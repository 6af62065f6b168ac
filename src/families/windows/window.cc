#include "families/windows/window.h"

namespace sparkle {

FeatureMap feature_map(const TensorDesc& desc) {
  FeatureMap map;
  const int rank = desc.shape.size();
  const Dims& strides = desc.layout.strides;
  if (rank > 0) map.n = desc.shape[0], map.image_stride = strides[0];
  if (rank > 1) map.c = desc.shape[1], map.channel_stride = strides[1];
  if (rank > 2) map.w = desc.shape[rank - 1], map.pixel_stride = strides[rank - 1];
  if (rank > 3) map.h = desc.shape[rank - 2], map.row_stride = strides[rank - 2];
  if (rank > 4) map.d = desc.shape[rank - 3], map.plane_stride = strides[rank - 3];
  return map;
}

}  // namespace sparkle
