#include "families/window.h"

namespace sparkle {

FeatureMap feature_map(const TensorDesc& desc) {
  FeatureMap map;
  const int rank = desc.shape.size();
  const Dims& pitch = desc.layout.pitch;
  if (rank > 0) map.n = desc.shape[0], map.pitch_n = pitch[0];
  if (rank > 1) map.c = desc.shape[1], map.pitch_c = pitch[1];
  if (rank > 2) map.w = desc.shape[rank - 1], map.pitch_w = pitch[rank - 1];
  if (rank > 3) map.h = desc.shape[rank - 2], map.pitch_h = pitch[rank - 2];
  if (rank > 4) map.d = desc.shape[rank - 3], map.pitch_d = pitch[rank - 3];
  return map;
}

}  // namespace sparkle
