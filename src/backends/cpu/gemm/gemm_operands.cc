#include "backends/cpu/gemm/gemm_operands.h"

#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/simd/channel_vectors.h"

namespace sparkle::cpu {

GemmWorkspace gemm_workspace(const GemmParams& params, const GemmGeometry& g) {
  const int64_t channels = aligned(params.groups * g.padded_n * 4);
  GemmWorkspace w;
  w.has_scale = params.epilogue.scale || params.epilogue.alpha != 1;
  w.scale_at = channels;
  w.copy_at = w.scale_at + (w.has_scale ? channels : 0);
  w.bytes = w.copy_at + aligned(g.copied_a * 4);
  return w;
}

GemmOperands gemm_operands(const Stage& stage, const GemmGeometry& g, const GemmWorkspace& w, const CpuLaunch& launch,
                           const void* weights) {
  const auto& params = get<GemmParams>(stage.params);
  const Epilogue& e = params.epilogue;
  const auto input = [&](int i) { return reinterpret_cast<const float*>(launch.inputs[static_cast<size_t>(i)]); };
  const auto place = [&](int64_t at) { return reinterpret_cast<float*>(launch.workspace + at); };
  // Of operand `i`, or `factor` alone where there is none.
  const auto pad = [&](int i, float factor, float* to) {
    pad_channels(i >= 0 ? &stage.inputs[static_cast<size_t>(i)] : nullptr, i >= 0 ? input(i) : nullptr, factor, params.groups,
                 g.n, g.padded_n, to);
    return to;
  };

  GemmOperands o;
  o.y = reinterpret_cast<float*>(launch.outputs[0]);
  o.a = input(0);
  o.b = weights;
  if (g.copied_a > 0) {
    copy_left(g, o.a, place(w.copy_at), *launch.executor);
    o.a = place(w.copy_at);
  }
  int next = 2;
  if (w.has_scale) o.scale = pad(e.scale ? next : -1, static_cast<float>(e.alpha), place(w.scale_at));
  next += e.scale;
  o.bias = pad(e.bias ? next : -1, e.bias ? 1.0f : 0.0f, place(0));
  next += e.bias;
  for (int i = 0; i < e.residuals(); ++i) o.residual[i] = input(next + i);
  return o;
}

}  // namespace sparkle::cpu
