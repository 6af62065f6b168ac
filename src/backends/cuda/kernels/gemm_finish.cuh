// What happens to sums before they are stored, and where they go: eight columns of a row a thread.
#pragma once

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"

namespace sparkle::cuda {

struct alignas(8) AlignedWords2 {
  uint32_t v[2];
};

// Bytes of an output.
SPARKLE_DEVICE int element_bytes(Element type) {
  return type == Element::i8 || type == Element::u8 ? 1 : type == Element::f16 || type == Element::bf16 ? 2 : 4;
}
SPARKLE_DEVICE float loaded_element(Element type, const void* from, int64_t at) {
  if (type == Element::f32) return load_global(static_cast<const float*>(from) + at);
  const uint16_t bits = load_global(static_cast<const uint16_t*>(from) + at);
  return type == Element::f16 ? float_of_half(bits) : float_of_bfloat(bits);
}
SPARKLE_DEVICE void store_element(Element type, void* to, int64_t at, float value) {
  if (type == Element::f32) {
    store_global(static_cast<float*>(to) + at, value);
  } else {
    store_global(static_cast<uint16_t*>(to) + at, type == Element::f16 ? half_of(value) : bfloat_of(value));
  }
}
SPARKLE_DEVICE void loaded_8(Element type, const void* from, int64_t at, float (&v)[8]) {
  if (type == Element::f32) {
    SPARKLE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const Words4 w = load_global(reinterpret_cast<const Words4*>(static_cast<const float*>(from) + at) + i);
      SPARKLE_UNROLL
      for (int j = 0; j < 4; ++j) v[4 * i + j] = float_of(w.v[j]);
    }
    return;
  }
  const Words4 w = load_global(reinterpret_cast<const Words4*>(static_cast<const uint16_t*>(from) + at));
  SPARKLE_UNROLL
  for (int j = 0; j < 8; ++j) {
    const auto bits = static_cast<uint16_t>(w.v[j / 2] >> (j % 2 * 16));
    v[j] = type == Element::f16 ? float_of_half(bits) : float_of_bfloat(bits);
  }
}
SPARKLE_DEVICE void store_8(Element type, void* to, int64_t at, const float (&v)[8]) {
  if (type == Element::f32) {
    SPARKLE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const Words4 w{{bits_of(v[4 * i]), bits_of(v[4 * i + 1]), bits_of(v[4 * i + 2]), bits_of(v[4 * i + 3])}};
      store_global(reinterpret_cast<Words4*>(static_cast<float*>(to) + at) + i, w);
    }
    return;
  }
  Words4 w;
  SPARKLE_UNROLL
  for (int j = 0; j < 4; ++j)
    w.v[j] = type == Element::f16 ? halfs_of(v[2 * j], v[2 * j + 1]) : bfloats_of(v[2 * j], v[2 * j + 1]);
  store_global(reinterpret_cast<Words4*>(static_cast<uint16_t*>(to) + at), w);
}

// Zero points of bytes: as they are, and as kernels that sum signed bytes see them.
SPARKLE_DEVICE int32_t zero_at(const void* from, int32_t at, bool is_unsigned) {
  if (from == nullptr) return 0;
  const uint8_t byte = load_global(static_cast<const uint8_t*>(from) + at);
  return is_unsigned ? byte : static_cast<int8_t>(byte);
}
// Pixels of u8 are multiplied as such by kernels of that type; others flip them.
template <Operand kType>
SPARKLE_DEVICE int32_t x_zero_of(const GemmRecord& record) {
  if constexpr (kType == Operand::u8) return zero_at(record.x_zero, 0, true);
  return zero_at(record.x_zero, 0, record.x_flip != 0) - (record.x_flip != 0 ? 128 : 0);
}
SPARKLE_DEVICE int32_t w_zero_of(const GemmRecord& record, int32_t filter) {
  return zero_at(record.w_zero, filter * record.w_zero_stride, record.w_unsigned != 0) - (record.w_unsigned != 0 ? 128 : 0);
}

// What zero points add to the sums of a column, where they were taken for all taps. `row` of w, `filter` as zero points are
// counted.
SPARKLE_DEVICE uint32_t summand_of_zero_points(const GemmRecord& record, int32_t x_zero, int32_t row, int32_t filter) {
  return static_cast<uint32_t>(x_zero * (record.all_k * w_zero_of(record, filter) - load_global(record.w_sums + row)));
}

// Taps of a row that see the image along h or w (axis 1 or 2): from `begin` on, before `end`.
struct TapsInside {
  int32_t begin, end;
  SPARKLE_DEVICE TapsInside(const GemmRecord& record, int axis, int32_t output) {
    const int32_t first = output * record.stride[axis] - record.pad[axis], apart = record.dilation[axis];
    const int32_t taps = record.filter[axis], size = record.x_size[axis];
    begin = 0, end = taps;
    if (first >= 0 && first + (taps - 1) * apart < size) return;
    end = first >= size ? 0 : (size - first + apart - 1) / apart;
    if (end > taps) end = taps;
    begin = first >= 0 ? 0 : (apart - 1 - first) / apart;
    if (begin > end) begin = end;
  }
};

// The columns of a thread: what does not change from row to row. kZerosOutside: what is outside of the image is 0 and not, of
// bytes, x's zero point.
template <Operand kType, bool kZerosOutside = false>
struct Finish {
  float scale[8];
  uint32_t bias[8];
  int32_t first;                           // column
  int32_t y_zero, x_zero, w_row, channel;  // of bytes: the first filter as rows of w and zero points are counted
  int64_t y, residual[2];

  SPARKLE_DEVICE void begin(const GemmRecord& record, int32_t column, uint32_t instance_number) {
    const Instance instance = instance_of(record, instance_number);
    const int32_t channel = dot4(instance.v, record.channel_instance);
    first = column;
    y = dot4(instance.v, record.y_instance);
    residual[0] = dot4(instance.v, record.residual_instance[0]);
    residual[1] = dot4(instance.v, record.residual_instance[1]);
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) {
      const bool there = column + e < record.n;
      const int32_t at = channel + column + e;
      scale[e] = there && record.scale != nullptr ? load_global(record.scale + at * record.scale_stride) : 1.0f;
      bias[e] = there && record.bias != nullptr
                    ? load_global(static_cast<const uint32_t*>(record.bias) + at * record.bias_stride)
                    : 0;
    }
    if constexpr (is_integer(kType)) {
      y_zero = zero_at(record.y_zero, 0, record.y_type == Element::u8);
      x_zero = 0;
      if (record.w_sums == nullptr) return;
      x_zero = x_zero_of<kType>(record);
      w_row = dot4(instance.v, record.w_instance) / record.w_stride + column;
      this->channel = channel + column;
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) {
        if (column + e >= record.n) continue;
        bias[e] += summand_of_zero_points(record, x_zero, w_row + e, channel + column + e);
      }
    }
  }

  // `words`: sums of this thread's columns and row.
  SPARKLE_DEVICE void row(const GemmRecord& record, int32_t m, const uint32_t (&words)[8]) const {
    if (m >= record.m || first >= record.n) return;
    const Pixel pixel = pixel_of(record, m);
    const int64_t at = y + dot4(pixel.v, record.y_strides) + int64_t{first} * record.y_channel;
    if constexpr (is_integer(kType)) {
      uint32_t sums[8];
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) sums[e] = words[e] + bias[e];
      if constexpr (kZerosOutside) {
        if (record.w_taps != nullptr && x_zero != 0) give_back_outside(record, pixel, sums);
      }
      integers(record, at, sums);
    } else {
      floats(record, pixel, at, words);
    }
  }

 private:
  // Sums whose zero points were taken for all taps, though some of this pixel's are outside and added nothing.
  SPARKLE_DEVICE void give_back_outside(const GemmRecord& record, const Pixel& pixel, uint32_t (&sums)[8]) const {
    const TapsInside h(record, 1, pixel.v[2]), w(record, 2, pixel.v[3]);
    const int32_t all = record.filter[1] * record.filter[2], outside = all - (h.end - h.begin) * (w.end - w.begin);
    if (outside == 0) return;
    const int32_t line = record.filter[2] + 1, channels = record.all_k / all;
    const int32_t* const from = record.w_taps + w_row;
    const auto taps = [&](int32_t r, int32_t s, int e) {
      return load_global(from + int64_t{r * line + s} * record.w_rows + e);
    };
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) {
      if (first + e >= record.n) continue;
      const int32_t inside =
          taps(h.end, w.end, e) - taps(h.begin, w.end, e) - taps(h.end, w.begin, e) + taps(h.begin, w.begin, e);
      const int32_t weights = load_global(record.w_sums + w_row + e) - inside;
      sums[e] += static_cast<uint32_t>(x_zero * (weights - outside * channels * w_zero_of(record, channel + e)));
    }
  }
  SPARKLE_DEVICE void floats(const GemmRecord& record, const Pixel& pixel, int64_t at, const uint32_t (&words)[8]) const {
    float v[8];
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) v[e] = float_of(words[e]) * (record.alpha * scale[e]) + float_of(bias[e]);
    const int32_t residuals = record.before + record.after;
    int64_t from[2];
    SPARKLE_UNROLL
    for (int i = 0; i < 2; ++i) {
      from[i] = residual[i] + dot4(pixel.v, record.residual_strides[i]) + int64_t{first} * record.residual_channel[i];
    }
    if (record.vectors) {
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (i < record.before) add_8(record, i, from[i], v);
      }
      activate(record, v);
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (i >= record.before && i < residuals) add_8(record, i, from[i], v);
      }
      store_8(record.y_type, record.y, at, v);
      return;
    }
    SPARKLE_UNROLL
    for (int i = 0; i < 2; ++i) {
      if (i < record.before) add(record, i, from[i], v);
    }
    activate(record, v);
    SPARKLE_UNROLL
    for (int i = 0; i < 2; ++i) {
      if (i >= record.before && i < residuals) add(record, i, from[i], v);
    }
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) {
      if (first + e < record.n) store_element(record.y_type, record.y, at + int64_t{e} * record.y_channel, v[e]);
    }
  }
  SPARKLE_DEVICE static void add_8(const GemmRecord& record, int i, int64_t from, float (&v)[8]) {
    float r[8];
    loaded_8(record.y_type, record.residual[i], from, r);
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) v[e] += r[e];
  }
  SPARKLE_DEVICE void add(const GemmRecord& record, int i, int64_t from, float (&v)[8]) const {
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) {
      if (first + e < record.n) {
        v[e] += loaded_element(record.y_type, record.residual[i], from + int64_t{e} * record.residual_channel[i]);
      }
    }
  }
  SPARKLE_DEVICE static void activate(const GemmRecord& record, float (&v)[8]) {
    if (record.activation == 0) return;
    if (record.activation == 1) {  // the commonest without the others' code
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) v[e] = rectified(v[e]);
      return;
    }
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) v[e] = activated(record.activation, v[e], record.a, record.b);
  }
  SPARKLE_DEVICE void integers(const GemmRecord& record, int64_t at, const uint32_t (&words)[8]) const {
    int32_t v[8];
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) {
      v[e] = static_cast<int32_t>(words[e]);
      if (record.scale != nullptr) {
        const float low = static_cast<float>(record.low - y_zero), high = static_cast<float>(record.high - y_zero);
        v[e] = to_nearest(clamped(static_cast<float>(v[e]) * scale[e], low, high)) + y_zero;
      }
    }
    if (record.y_type == Element::i32) {
      int32_t* to = static_cast<int32_t*>(record.y) + at;
      if (record.vectors) {
        SPARKLE_UNROLL
        for (int i = 0; i < 2; ++i) {
          const Words4 w{{static_cast<uint32_t>(v[4 * i]), static_cast<uint32_t>(v[4 * i + 1]),
                          static_cast<uint32_t>(v[4 * i + 2]), static_cast<uint32_t>(v[4 * i + 3])}};
          store_global(reinterpret_cast<Words4*>(to) + i, w);
        }
        return;
      }
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) {
        if (first + e < record.n) store_global(to + int64_t{e} * record.y_channel, v[e]);
      }
      return;
    }
    uint8_t* to = static_cast<uint8_t*>(record.y) + at;
    if (record.vectors) {
      AlignedWords2 w;
      SPARKLE_UNROLL
      for (int i = 0; i < 2; ++i) {
        w.v[i] = (static_cast<uint32_t>(v[4 * i]) & 255) | (static_cast<uint32_t>(v[4 * i + 1]) & 255) << 8 |
                 (static_cast<uint32_t>(v[4 * i + 2]) & 255) << 16 | static_cast<uint32_t>(v[4 * i + 3]) << 24;
      }
      store_global(reinterpret_cast<AlignedWords2*>(to), w);
      return;
    }
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) {
      if (first + e < record.n) store_global(to + int64_t{e} * record.y_channel, static_cast<uint8_t>(v[e]));
    }
  }
};

}  // namespace sparkle::cuda
