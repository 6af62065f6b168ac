#include "backends/cpu/channel_epilogue.h"

#include <algorithm>

#include "backends/cpu/simd/channel_vectors.h"
#include "families/windows/window.h"

namespace sparkle::cpu {
namespace {

// Axes of size 1 broadcast whatever their stride.
int64_t channel_stride(const FeatureMap& map) { return map.c > 1 ? map.channel_stride : 0; }
int64_t pixel_stride(const FeatureMap& map) { return map.w > 1 ? map.pixel_stride : 0; }

}  // namespace

ChannelEpilogue::ChannelEpilogue(const Stage& stage, const Epilogue& epilogue, int64_t padded)
    : epilogue_(epilogue),
      channels_(feature_map(stage.outputs[0]).c),
      padded_(padded),
      vector_bytes_((padded * 4 + 63) / 64 * 64),
      scales_(epilogue.scale || epilogue.alpha != 1) {
  const Epilogue& e = epilogue_;
  clamps_ = e.activation == Activation::none || e.activation == Activation::relu || e.activation == Activation::clip;
  size_t next = 2;
  if (e.scale) scale_ = stage.inputs[next++];
  if (e.bias) bias_ = stage.inputs[next++];
  for (int i = 0; i < residuals(); ++i) {
    residual_[i] = feature_map(stage.inputs[next++]);
    dense_residuals_ = dense_residuals_ && (residual_[i].c > 1 ? residual_[i].channel_stride == 1 : channels_ == 1);
  }
}

void ChannelEpilogue::pad(const float* values, const TensorDesc& desc, float factor, float* to) const {
  pad_channels(values ? &desc : nullptr, values, factor, 1, channels_, padded_, to);
}

EpilogueOperands ChannelEpilogue::prepare(const CpuLaunch& launch, int64_t workspace_at) const {
  const Epilogue& e = epilogue_;
  size_t next = 2;
  const auto input = [&] { return reinterpret_cast<const float*>(launch.inputs[next++]); };
  float* bias = reinterpret_cast<float*>(launch.workspace + workspace_at);
  EpilogueOperands operands;
  if (scales_) {
    float* scale = reinterpret_cast<float*>(launch.workspace + workspace_at + vector_bytes_);
    pad(e.scale ? input() : nullptr, scale_, static_cast<float>(e.alpha), scale);
    operands.scale = scale;
  }
  pad(e.bias ? input() : nullptr, bias_, e.bias ? 1.0f : 0.0f, bias);
  operands.bias = bias;
  for (int i = 0; i < residuals(); ++i) operands.residual[i] = input();
  return operands;
}

Clamp ChannelEpilogue::clamp() const {
  const bool clip = epilogue_.activation == Activation::clip;
  return {epilogue_.activation != Activation::none, clip, clip ? static_cast<float>(epilogue_.a) : 0.0f,
          static_cast<float>(epilogue_.b)};
}

const float* ChannelEpilogue::residual(const EpilogueOperands& operands, int i, const OutputRow& at) const {
  const FeatureMap& map = residual_[i];
  return operands.residual[i] + (map.n > 1 ? at.n * map.image_stride : 0) + (map.h > 1 ? at.p * map.row_stride : 0) +
         at.q0 * pixel_stride(map) + at.first * channel_stride(map);
}

void ChannelEpilogue::finish(const TileKernels& tiles, const EpilogueOperands& operands, const OutputRow& row, float* sums,
                             int64_t sums_stride, const FeatureMap& y_map, float* y) const {
  const Epilogue& e = epilogue_;
  FinishCall call{};
  call.sums_stride = sums_stride, call.columns = row.channels;
  call.scale = operands.scale ? operands.scale + row.first : nullptr;
  call.bias = operands.bias + row.first;
  call.residuals_before = e.residuals_before, call.residuals_after = e.residuals_after;
  call.activation = e.activation;
  call.activation_a = static_cast<float>(e.a), call.activation_b = static_cast<float>(e.b);
  y += row.n * y_map.image_stride + row.p * y_map.row_stride + row.first;
  for (OutputRow at = row; at.q0 < row.q1; at.q0 += kMaxCallRows) {
    const int64_t rows = std::min<int64_t>(kMaxCallRows, row.q1 - at.q0);
    call.sums = sums + (at.q0 - row.q0) * sums_stride;
    call.rows = static_cast<int>(rows);
    for (int64_t r = 0; r < rows; ++r) call.y[r] = y + (at.q0 + r) * y_map.pixel_stride;
    for (int i = 0; i < residuals(); ++i) {
      call.residual_strides[i] = channel_stride(residual_[i]);
      const float* from = residual(operands, i, at);
      for (int64_t r = 0; r < rows; ++r) call.residual[i][r] = from + r * pixel_stride(residual_[i]);
    }
    tiles.finish(call);
  }
}

}  // namespace sparkle::cpu
