// The product with an output a thread: both operands from memory as they lie, nothing shared but by caches. What other kernels
// are compared with.
#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/kernels/gemm_one_output_record.h"

using namespace sparkle::cuda;

namespace {

template <Element kType>
SPARKLE_DEVICE float sum_of(const GemmOneOutputRecord& record, const Pixel& pixel, int64_t x0, int64_t w0) {
  const GemmRecord& g = record.gemm;
  float sum = 0;
  for (int32_t t = 0; t < g.filter[0]; ++t) {
    const int32_t d = pixel.v[1] * g.stride[0] - g.pad[0] + t * g.dilation[0];
    if (!inside(d, g.x_size[0])) continue;
    for (int32_t r = 0; r < g.filter[1]; ++r) {
      const int32_t h = pixel.v[2] * g.stride[1] - g.pad[1] + r * g.dilation[1];
      if (!inside(h, g.x_size[1])) continue;
      for (int32_t s = 0; s < g.filter[2]; ++s) {
        const int32_t w = pixel.v[3] * g.stride[2] - g.pad[2] + s * g.dilation[2];
        if (!inside(w, g.x_size[2])) continue;
        int64_t from = x0 + int64_t{d} * g.x_strides[1] + int64_t{h} * g.x_strides[2] + int64_t{w} * g.x_strides[3];
        int64_t weight = w0 + int64_t{t} * record.w_strides[1] + int64_t{r} * record.w_strides[2] + int64_t{s} * record.w_strides[3];
        for (int32_t c = 0; c < record.channels; ++c) {
          sum += loaded_element(kType, g.x, from) * loaded_element(kType, g.w, weight);
          from += g.x_channel, weight += record.w_strides[4];
        }
      }
    }
  }
  return sum;
}

template <Element kType>
SPARKLE_DEVICE void one_output(const GemmOneOutputRecord& record) {
  uint32_t index = block_x() * kOneOutputThreads + thread_id();
  if (index >= record.count) return;
  const GemmRecord& g = record.gemm;
  const auto n = static_cast<int32_t>(fast_divmod(index, record.n_by));
  const Pixel pixel = pixel_of(g, static_cast<int32_t>(fast_divmod(index, record.m_by)));
  const Instance instance = instance_of(g, index);
  const int32_t channel = dot4(instance.v, g.channel_instance) + n;
  const int64_t x0 = int64_t{dot4(instance.v, g.x_instance)} + int64_t{pixel.v[0]} * g.x_strides[0];
  const int64_t w0 = int64_t{dot4(instance.v, g.w_instance)} + int64_t{n} * record.w_strides[0];
  float v = sum_of<kType>(record, pixel, x0, w0) * g.alpha;
  if (g.scale != nullptr) v *= load_global(g.scale + channel);
  if (g.bias != nullptr) v += load_global(static_cast<const float*>(g.bias) + channel);
  float residual[2] = {};
  SPARKLE_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (i < g.before + g.after)
      residual[i] = loaded_element(kType, g.residual[i],
                                   int64_t{dot4(instance.v, g.residual_instance[i])} + dot4(pixel.v, g.residual_strides[i]) +
                                       int64_t{n} * g.residual_channel[i]);
  }
  SPARKLE_UNROLL
  for (int i = 0; i < 2; ++i)
    if (i < g.before) v += residual[i];
  v = activated(g.activation, v, g.a, g.b);
  SPARKLE_UNROLL
  for (int i = 0; i < 2; ++i)
    if (i >= g.before) v += residual[i];
  store_element(kType, g.y, int64_t{dot4(instance.v, g.y_instance)} + dot4(pixel.v, g.y_strides) + int64_t{n} * g.y_channel, v);
}

}  // namespace

SPARKLE_KERNEL(sparkle_gemm_one_output_f32, GemmOneOutputRecord, kOneOutputThreads, 4) { one_output<Element::f32>(record); }
SPARKLE_KERNEL(sparkle_gemm_one_output_f16, GemmOneOutputRecord, kOneOutputThreads, 4) { one_output<Element::f16>(record); }
SPARKLE_KERNEL(sparkle_gemm_one_output_bf16, GemmOneOutputRecord, kOneOutputThreads, 4) { one_output<Element::bf16>(record); }
