// Windows over channels: an output a thread, or four neighbouring channels of one.
#pragma once

#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/windows/window_record.h"

namespace sparkle::cuda {

template <int kWidth>
struct Channels {
  float v[kWidth];
};

template <int kWidth>
SPARKLE_DEVICE Channels<kWidth> load_channels(const WindowRecord& record, const void* from, int64_t at) {
  Channels<kWidth> c;
  const auto type = static_cast<DType>(record.type);
  if constexpr (kWidth == 4) {
    if (type == DType::f16 || type == DType::bf16) {
      const uint64_t bits = load_global(reinterpret_cast<const uint64_t*>(static_cast<const uint16_t*>(from) + at));
      SPARKLE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const auto own = static_cast<uint16_t>(bits >> 16 * i);
        c.v[i] = type == DType::f16 ? float_of_half(own) : float_of_bfloat(own);
      }
    } else {
      const Words4 w = load_global(reinterpret_cast<const Words4*>(static_cast<const float*>(from) + at));
      SPARKLE_UNROLL
      for (int i = 0; i < 4; ++i) c.v[i] = float_of(w.v[i]);
    }
  } else {
    c.v[0] = loaded<float>(type, from, at);
  }
  return c;
}
template <int kWidth>
SPARKLE_DEVICE void store_channels(const WindowRecord& record, void* to, int64_t at, const Channels<kWidth>& c) {
  const auto type = static_cast<DType>(record.type);
  if constexpr (kWidth == 4) {
    if (type == DType::f16 || type == DType::bf16) {
      uint64_t bits = 0;
      SPARKLE_UNROLL
      for (int i = 0; i < 4; ++i) bits |= uint64_t{type == DType::f16 ? half_of(c.v[i]) : bfloat_of(c.v[i])} << 16 * i;
      store_global(reinterpret_cast<uint64_t*>(static_cast<uint16_t*>(to) + at), bits);
    } else {
      store_global(reinterpret_cast<Words4*>(static_cast<float*>(to) + at),
                   Words4{{bits_of(c.v[0]), bits_of(c.v[1]), bits_of(c.v[2]), bits_of(c.v[3])}});
    }
  } else {
    stored(type, to, at, c.v[0]);
  }
}

// An output: its pixel n,d,h,w, its channel, and where its window begins in x.
struct OutputOfThread {
  int32_t pixel[4], channel, origin[3];

  template <int kWidth>
  SPARKLE_DEVICE static OutputOfThread at(const WindowRecord& record, uint32_t index) {
    OutputOfThread o;
    if (!record.planes) o.channel = kWidth * static_cast<int32_t>(fast_divmod(index, record.channels));
    o.pixel[3] = static_cast<int32_t>(fast_divmod(index, record.w_size));
    o.pixel[2] = static_cast<int32_t>(fast_divmod(index, record.h));
    o.pixel[1] = static_cast<int32_t>(fast_divmod(index, record.d));
    if (record.planes) o.channel = kWidth * static_cast<int32_t>(fast_divmod(index, record.channels));
    o.pixel[0] = static_cast<int32_t>(index);
    SPARKLE_UNROLL
    for (int i = 0; i < 3; ++i) o.origin[i] = o.pixel[i + 1] * record.stride[i] - record.pad[i];
    return o;
  }
  SPARKLE_DEVICE int64_t place(const int32_t (&strides)[4]) const {
    return int64_t{pixel[0]} * strides[0] + int64_t{pixel[1]} * strides[1] + int64_t{pixel[2]} * strides[2] +
           int64_t{pixel[3]} * strides[3];
  }
  // f(place in x, d, h, w, t, r, s) for each tap inside of x.
  template <class F>
  SPARKLE_DEVICE void for_each_tap(const WindowRecord& record, int32_t x_channel, F&& f) const {
    const int64_t from = int64_t{pixel[0]} * record.x_strides[0] + int64_t{x_channel} * record.x_channel;
    for (int32_t t = 0; t < record.filter[0]; ++t) {
      const int32_t d = origin[0] + t * record.dilation[0];
      if (!inside(d, record.x_size[0])) continue;
      for (int32_t r = 0; r < record.filter[1]; ++r) {
        const int32_t h = origin[1] + r * record.dilation[1];
        if (!inside(h, record.x_size[1])) continue;
        for (int32_t s = 0; s < record.filter[2]; ++s) {
          const int32_t w = origin[2] + s * record.dilation[2];
          if (!inside(w, record.x_size[2])) continue;
          f(from + int64_t{d} * record.x_strides[1] + int64_t{h} * record.x_strides[2] + int64_t{w} * record.x_strides[3], d, h,
            w, t, r, s);
        }
      }
    }
  }
};

}  // namespace sparkle::cuda
