// Depthwise convolutions with their epilogue: any filter, stride and dilation; one output a thread over any layout, or four channels of
// one with filters as [tap][filter].
#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/windows/window.cuh"

using namespace sparkle::cuda;

namespace {

SPARKLE_DEVICE float finished(const WindowRecord& record, const OutputOfThread& o, float sum, int32_t k) {
  const auto type = static_cast<DType>(record.type);
  float v = sum * record.alpha;
  if (record.scale != nullptr) v *= loaded<float>(type, record.scale, int64_t{k} * record.scale_stride);
  if (record.bias != nullptr) v += loaded<float>(type, record.bias, int64_t{k} * record.bias_stride);
  SPARKLE_UNROLL
  for (int i = 0; i < 2; ++i)
    if (i < record.before)
      v += loaded<float>(type, record.residual[i], o.place(record.residual_strides[i]) + int64_t{k} * record.residual_channel[i]);
  v = activated(record.activation, v, record.a, record.b);
  SPARKLE_UNROLL
  for (int i = 0; i < 2; ++i)
    if (i >= record.before && i < record.before + record.after)
      v += loaded<float>(type, record.residual[i], o.place(record.residual_strides[i]) + int64_t{k} * record.residual_channel[i]);
  return v;
}

template <int kWidth>
SPARKLE_DEVICE void depthwise_window(const WindowRecord& record) {
  const uint32_t index = block_x() * kWindowThreads + thread_id();
  if (index >= record.count) return;
  const OutputOfThread o = OutputOfThread::at<kWidth>(record, index);
  const int32_t channel = static_cast<int32_t>(divided(static_cast<uint32_t>(o.channel), record.multiplier));
  Channels<kWidth> sum;
  SPARKLE_UNROLL
  for (int i = 0; i < kWidth; ++i) sum.v[i] = 0;
  o.for_each_tap(record, channel, [&](int64_t at, int32_t, int32_t, int32_t, int32_t t, int32_t r, int32_t s) {
    const Channels<kWidth> x = load_channels<kWidth>(record, record.x, at);
    const Channels<kWidth> w = load_channels<kWidth>(
        record, record.w,
        int64_t{o.channel} * record.w_strides[0] + int64_t{t} * record.w_strides[1] + int64_t{r} * record.w_strides[2] +
            int64_t{s} * record.w_strides[3]);
    SPARKLE_UNROLL
    for (int i = 0; i < kWidth; ++i) sum.v[i] += x.v[i] * w.v[i];
  });
  SPARKLE_UNROLL
  for (int i = 0; i < kWidth; ++i) sum.v[i] = finished(record, o, sum.v[i], o.channel + i);
  store_channels<kWidth>(record, record.y, o.place(record.y_strides) + int64_t{o.channel} * record.y_channel, sum);
}

}  // namespace

SPARKLE_KERNEL(sparkle_depthwise_1, WindowRecord, kWindowThreads, 4) { depthwise_window<1>(record); }
SPARKLE_KERNEL(sparkle_depthwise_4, WindowRecord, kWindowThreads, 4) { depthwise_window<4>(record); }
