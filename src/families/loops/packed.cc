#include "families/loops/packed.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_shape.h"
#include "families/gemm/stored_weights.h"
#include "families/winograd/winograd.h"

namespace sparkle {
namespace {

int64_t lanes_of(const Schedule& schedule, const Device& device) {
  if (variant_of(schedule) == kRowDots) return 1;
  const MathUnit* unit = device.unit(unit_of(schedule));
  return unit ? std::max(1, unit->n) : 1;
}

}  // namespace

int64_t packed_weight_bytes(const Stage& stage, const Schedule& schedule, const Device& device) {
  constexpr int64_t kFloat = 4, kLine = 64;
  if (stage.inputs.size() < 2 || stage.outputs.empty() || stage.inputs[1].dtype != DType::f32) return 0;
  const int64_t lanes = lanes_of(schedule, device);
  if (const auto* w = get_if<WinogradParams>(&stage.params)) {
    if (!holds<WinogradSchedule>(schedule)) return 0;
    const int64_t points = w->tile + 2;
    const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
    return rounded_up(points * points * x.c * rounded_up(y.c, lanes) * kFloat, kLine);
  }
  if (const auto* g = get_if<GemmParams>(&stage.params)) {
    if (!holds<GemmSchedule>(schedule)) return 0;
    const GemmSizes sizes = gemm_sizes(*g, stage.inputs, stage.outputs[0]);
    if (variant_of(schedule) == kMatrixBf16) {  // channels of each tap in pairs
      constexpr int64_t kBf16 = 2;
      const int64_t taps = g->loader == Loader::window ? g->window.taps() : 1;
      const int64_t k = taps * rounded_up(sizes.k / std::max<int64_t>(1, taps), 2);
      return rounded_up(sizes.weight_matrices * rounded_up(sizes.n, lanes) * k * kBf16 + kMatrixOverread, kLine);
    }
    return rounded_up(
        sizes.weight_matrices * rounded_up(sizes.n, lanes) * sizes.k * size_of(stored_weights(variant_of(schedule))), kLine);
  }
  return 0;
}

}  // namespace sparkle
