// Deformable convolution: samples of a few pixels' taps and channels go to shared memory, a slab of k at a time, and are
// multiplied there; a thread has four pixels of four filters. Places are computed as families/deform does, rounded one by one.
#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/integers/integers.cuh"
#include "backends/cuda/kernels/moves/deform_record.h"
#include "backends/cuda/ptx/threads.cuh"

using namespace sparkle::cuda;

namespace {

// A pixel of y by its number.
struct Place {
  int32_t image, row, column;
  SPARKLE_DEVICE Place(const DeformRecord& record, uint32_t pixel) {
    column = static_cast<int32_t>(fast_divmod(pixel, record.columns));
    row = static_cast<int32_t>(fast_divmod(pixel, record.rows));
    image = static_cast<int32_t>(pixel);
  }
  SPARKLE_DEVICE int32_t in(const int32_t (&strides)[4], int32_t channel) const {
    return image * strides[0] + channel * strides[1] + row * strides[2] + column * strides[3];
  }
};

template <DType kType>
SPARKLE_DEVICE float element(const DeformRecord& record, int32_t from, int32_t h, int32_t w) {
  if (h < 0 || h >= record.height || w < 0 || w >= record.width) return 0;
  return loaded<float>(kType, record.x, from + h * record.x_strides[2] + w * record.x_strides[3]);
}

// What element `k` of a group's depth is for a pixel.
template <DType kType>
SPARKLE_DEVICE float sampled(const DeformRecord& record, int32_t pixel, int32_t k, int32_t group) {
  if (pixel >= record.pixels || k >= record.depth) return 0;
  const Place at(record, static_cast<uint32_t>(pixel));
  auto tap = static_cast<uint32_t>(k);
  const int32_t channel = group * record.inner + static_cast<int32_t>(fast_divmod(tap, record.channels));
  uint32_t r = tap;
  const auto s = static_cast<int32_t>(fast_divmod(r, record.filter_columns));
  const auto of_group = static_cast<int32_t>(divided(static_cast<uint32_t>(channel), record.offset_channels));
  const int32_t moved = of_group * record.taps + static_cast<int32_t>(tap);
  const auto place_on = [&](int axis, int32_t out, int32_t step) {
    const int32_t plain = out * record.stride[axis] + step * record.dilation[axis] - record.pad[axis];
    return exact_sum(static_cast<float>(plain),
                     loaded<float>(kType, record.offset, at.in(record.offset_strides, 2 * moved + axis)));
  };
  const float h = place_on(0, at.row, static_cast<int32_t>(r)), w = place_on(1, at.column, s);
  float value = 0;
  // Also false for what is no number.
  if (h > -1 && w > -1 && h < static_cast<float>(record.height) && w < static_cast<float>(record.width)) {
    const float above = std::floor(h), before = std::floor(w), lower = exact_sum(h, -above), right = exact_sum(w, -before);
    const auto h0 = static_cast<int32_t>(above), w0 = static_cast<int32_t>(before);
    const int32_t from = at.image * record.x_strides[0] + channel * record.x_strides[1];
    const auto row = [&](int32_t i) {
      return (1 - right) * element<kType>(record, from, i, w0) + right * element<kType>(record, from, i, w0 + 1);
    };
    value = (1 - lower) * row(h0) + lower * row(h0 + 1);
  }
  return record.mask ? value * loaded<float>(kType, record.mask, at.in(record.mask_strides, moved)) : value;
}

template <DType kType>
SPARKLE_DEVICE float weight(const DeformRecord& record, int32_t filter, int32_t k, int32_t group) {
  if (filter >= record.outer || k >= record.depth) return 0;
  auto r = static_cast<uint32_t>(k);
  const auto channel = static_cast<int32_t>(fast_divmod(r, record.channels)),
             s = static_cast<int32_t>(fast_divmod(r, record.filter_columns));
  return loaded<float>(kType, record.w,
                       (group * record.outer + filter) * record.w_strides[0] + channel * record.w_strides[1] +
                           static_cast<int32_t>(r) * record.w_strides[2] + s * record.w_strides[3]);
}

template <DType kType>
SPARKLE_DEVICE void deform(const DeformRecord& record) {
  const SharedAddress samples = shared_base(), filters = samples + kDeformSlab * kDeformSampleRow;
  uint32_t work = block_x();
  const int32_t first_filter = static_cast<int32_t>(fast_divmod(work, record.filter_tiles)) * kDeformFilters;
  const auto group = static_cast<int32_t>(fast_divmod(work, record.groups));
  const int32_t first_pixel = static_cast<int32_t>(work) * kDeformPixels, thread = static_cast<int32_t>(thread_id());
  const int32_t pixel = thread / 16 * 4, filter = thread % 16 * 4;  // of this thread's four by four
  float sums[4][4] = {};
  for (int32_t k = 0; k < record.depth; k += kDeformSlab) {
    sync_block();
    SPARKLE_ROLLED
    for (int32_t i = thread; i < kDeformSlab * kDeformPixels; i += kDeformThreads) {
      const int32_t j = i % kDeformSlab, at = i / kDeformSlab;
      store_shared_4(samples + static_cast<uint32_t>(j * kDeformSampleRow + 4 * at),
                     bits_of(sampled<kType>(record, first_pixel + at, k + j, group)));
    }
    SPARKLE_ROLLED
    for (int32_t i = thread; i < kDeformSlab * kDeformFilters; i += kDeformThreads) {
      const int32_t j = i % kDeformSlab, at = i / kDeformSlab;
      store_shared_4(filters + static_cast<uint32_t>(j * kDeformFilterRow + 4 * at),
                     bits_of(weight<kType>(record, first_filter + at, k + j, group)));
    }
    sync_block();
    SPARKLE_ROLLED
    for (int32_t j = 0; j < kDeformSlab; ++j) {
      const Words4 x = load_shared_16(samples + static_cast<uint32_t>(j * kDeformSampleRow + 4 * pixel)),
                   w = load_shared_16(filters + static_cast<uint32_t>(j * kDeformFilterRow + 4 * filter));
      SPARKLE_UNROLL
      for (int p = 0; p < 4; ++p) {
        SPARKLE_UNROLL
        for (int f = 0; f < 4; ++f) sums[p][f] = multiply_add(float_of(x.v[p]), float_of(w.v[f]), sums[p][f]);
      }
    }
  }
  SPARKLE_UNROLL
  for (int p = 0; p < 4; ++p) {
    if (first_pixel + pixel + p >= record.pixels) continue;
    const Place at(record, static_cast<uint32_t>(first_pixel + pixel + p));
    SPARKLE_UNROLL
    for (int f = 0; f < 4; ++f) {
      if (first_filter + filter + f >= record.outer) continue;
      const int32_t number = group * record.outer + first_filter + filter + f;
      float sum = sums[p][f];
      if (record.bias) sum += loaded<float>(kType, record.bias, number * record.bias_stride);
      stored(kType, record.y, at.in(record.y_strides, number), sum);
    }
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_deform_f32, DeformRecord, kDeformThreads, 8) { deform<DType::f32>(record); }
SPARKLE_KERNEL(sparkle_deform_f16, DeformRecord, kDeformThreads, 8) { deform<DType::f16>(record); }
SPARKLE_KERNEL(sparkle_deform_bf16, DeformRecord, kDeformThreads, 8) { deform<DType::bf16>(record); }
