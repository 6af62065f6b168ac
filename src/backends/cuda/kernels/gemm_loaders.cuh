// How tiles of both operands come into shared memory: rows of kBytes of k, 16-byte chunks exchanged within 128 bytes so that
// neither a copy nor ldmatrix meets a bank twice. A thread has one column of chunks and several rows of it.
#pragma once

#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/ptx/matrix.cuh"

namespace sparkle::cuda {

// Bytes from the tile's beginning to a chunk: chunk ^ (row within 128 bytes' worth of chunks).
template <int kBytes>
SPARKLE_DEVICE uint32_t chunk_place(uint32_t row, uint32_t chunk) {
  static_assert(kBytes == 64 || kBytes == 128);
  if constexpr (kBytes == 64) return row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4);
  return row * 128 + ((chunk ^ (row & 7)) << 4);
}

template <int kRows, int kBytes, int kThreads>
struct ChunkRows {
  static constexpr int kChunks = kBytes / 16;        // of a row
  static constexpr int kApart = kThreads / kChunks;  // rows between a thread's
  static constexpr int kOwn = kRows / kApart;        // rows of a thread
  static_assert(kOwn * kApart == kRows);
  SPARKLE_DEVICE static uint32_t chunk() { return thread_id() % kChunks; }
  SPARKLE_DEVICE static uint32_t first() { return thread_id() / kChunks; }
};

// The right operand: a filter a row, k side by side.
template <Operand kType, int kRows, int kBytes, int kThreads>
struct LoadFilters : ChunkRows<kRows, kBytes, kThreads> {
  using Rows = ChunkRows<kRows, kBytes, kThreads>;
  static constexpr int kElement = operand_bytes(kType);
  const uint8_t* from;
  int32_t k;    // of this thread's chunk in the next tile
  int32_t row;  // the first
  uint32_t to;

  SPARKLE_DEVICE void begin(const GemmRecord& record, int32_t first_row, int32_t first_k, int32_t instance) {
    k = first_k + static_cast<int32_t>(Rows::chunk()) * (16 / kElement);
    row = first_row + static_cast<int32_t>(Rows::first());
    from = static_cast<const uint8_t*>(record.w) + (int64_t{instance} + int64_t{row} * record.w_stride + k) * kElement;
    to = chunk_place<kBytes>(Rows::first(), Rows::chunk());
  }
  SPARKLE_DEVICE void load(const GemmRecord& record, SharedAddress tile) {
    const int64_t apart = int64_t{record.w_stride} * (Rows::kApart * kElement);
    const uint8_t* at = from;
    SPARKLE_UNROLL
    for (int i = 0; i < Rows::kOwn; ++i) {
      const bool valid = row + i * Rows::kApart < record.n && k < record.k;
      copy_async_16(tile + to + i * (Rows::kApart * kBytes), at, valid ? 16 : 0);
      at += apart;
    }
    k += kBytes / kElement;
    from += kBytes;
  }
};

// The left operand by chunks of channels. Which taps of a row lie inside of the image is a bit each, found once; the tap is the
// thread's, not the row's.
template <Operand kType, int kRows, int kBytes, int kThreads>
struct LoadChunks : ChunkRows<kRows, kBytes, kThreads> {
  using Rows = ChunkRows<kRows, kBytes, kThreads>;
  static constexpr int kElement = operand_bytes(kType);
  const uint8_t* x;
  int32_t element[Rows::kOwn];
  uint32_t taps_inside[Rows::kOwn];
  int32_t channel, t, r, s;
  uint32_t bits;  // of the tap, all where k has ended
  int32_t tap_element;
  uint32_t to;

  SPARKLE_DEVICE void find_tap(const GemmRecord& record) {
    const int32_t filters_r = record.filter[0], filters_s = filters_r + record.filter[1];
    bits = t < record.filter[0] ? 1u << t | 1u << (filters_r + r) | 1u << (filters_s + s) : 0xffffffffu;
    tap_element = t * record.dilation[0] * record.x_strides[1] + r * record.dilation[1] * record.x_strides[2] +
                  s * record.dilation[2] * record.x_strides[3];
  }
  SPARKLE_DEVICE void begin(const GemmRecord& record, int32_t first_row, int32_t first_k, int32_t instance) {
    x = static_cast<const uint8_t*>(record.x) + int64_t{instance} * kElement;
    to = chunk_place<kBytes>(Rows::first(), Rows::chunk());
    SPARKLE_UNROLL
    for (int i = 0; i < Rows::kOwn; ++i) {
      const int32_t row = first_row + static_cast<int32_t>(Rows::first()) + i * Rows::kApart;
      const Origin o = origin_of(record, row);
      element[i] = o.element;
      uint32_t bit = 1, found = 0;
      for (int32_t j = 0; j < record.filter[0]; ++j, bit <<= 1) {
        found |= inside(o.d + j * record.dilation[0], record.x_size[0]) ? bit : 0;
      }
      for (int32_t j = 0; j < record.filter[1]; ++j, bit <<= 1) {
        found |= inside(o.h + j * record.dilation[1], record.x_size[1]) ? bit : 0;
      }
      for (int32_t j = 0; j < record.filter[2]; ++j, bit <<= 1) {
        found |= inside(o.w + j * record.dilation[2], record.x_size[2]) ? bit : 0;
      }
      taps_inside[i] = row < record.m ? found : 0;
    }
    uint32_t tap = static_cast<uint32_t>(first_k) + Rows::chunk() * (16 / kElement);
    channel = static_cast<int32_t>(fast_divmod(tap, record.channels_by));
    s = static_cast<int32_t>(fast_divmod(tap, record.filter_by[1]));
    r = static_cast<int32_t>(fast_divmod(tap, record.filter_by[0]));
    t = static_cast<int32_t>(tap);
    find_tap(record);
  }
  SPARKLE_DEVICE void load(const GemmRecord& record, SharedAddress tile) {
    const int32_t at = tap_element + channel;
    SPARKLE_UNROLL
    for (int i = 0; i < Rows::kOwn; ++i) {
      const bool valid = (taps_inside[i] & bits) == bits;
      const void* from = x + int64_t{element[i] + at} * kElement;
      if constexpr (kType == Operand::i8) {
        const bool padded = record.padding != nullptr;
        copy_async_16(tile + to + i * (Rows::kApart * kBytes), valid || !padded ? from : record.padding,
                      valid || padded ? 16 : 0);
      } else {
        copy_async_16(tile + to + i * (Rows::kApart * kBytes), from, valid ? 16 : 0);
      }
    }
    channel += kBytes / kElement;
    const int32_t channels = static_cast<int32_t>(record.channels_by.size);
    if (channel < channels) return;
    do {
      channel -= channels;
      if (++s == record.filter[2]) {
        s = 0;
        if (++r == record.filter[1]) r = 0, ++t;
      }
    } while (channel >= channels);
    find_tap(record);
  }
};

// The left operand element by element, through registers: any layout, any filter.
template <Operand kType, int kRows, int kBytes, int kThreads>
struct LoadElements : ChunkRows<kRows, kBytes, kThreads> {
  using Rows = ChunkRows<kRows, kBytes, kThreads>;
  static constexpr int kElement = operand_bytes(kType), kPerWord = 4 / kElement;
  const uint8_t* x;
  Origin origin[Rows::kOwn];
  int32_t k;
  uint32_t to;
  Words4 words[Rows::kOwn];

  SPARKLE_DEVICE void begin(const GemmRecord& record, int32_t first_row, int32_t first_k, int32_t instance) {
    x = static_cast<const uint8_t*>(record.x) + int64_t{instance} * kElement;
    to = chunk_place<kBytes>(Rows::first(), Rows::chunk());
    SPARKLE_UNROLL
    for (int i = 0; i < Rows::kOwn; ++i) {
      const int32_t row = first_row + static_cast<int32_t>(Rows::first()) + i * Rows::kApart;
      origin[i] = origin_of(record, row);
      if (row >= record.m) origin[i].d = -0x40000000;  // outside of any image
    }
    k = first_k + static_cast<int32_t>(Rows::chunk()) * (16 / kElement);
  }
  SPARKLE_DEVICE uint32_t element_at(int64_t at) const {
    if constexpr (kElement == 1) return load_global(x + at);
    if constexpr (kElement == 2) return load_global(reinterpret_cast<const uint16_t*>(x) + at);
    return load_global(reinterpret_cast<const uint32_t*>(x) + at);
  }
  // The next tile's into registers; they are put down when the tile before has been multiplied.
  SPARKLE_DEVICE void fetch(const GemmRecord& record) {
    const uint32_t outside = record.padding != nullptr ? load_global(static_cast<const uint8_t*>(record.padding)) : 0;
    SPARKLE_UNROLL
    for (int e = 0; e < 16 / kElement; ++e) {
      uint32_t tap = static_cast<uint32_t>(k + e);
      const int32_t c = static_cast<int32_t>(fast_divmod(tap, record.channels_by));
      const int32_t s = static_cast<int32_t>(fast_divmod(tap, record.filter_by[1])) * record.dilation[2];
      const int32_t r = static_cast<int32_t>(fast_divmod(tap, record.filter_by[0])) * record.dilation[1];
      const int32_t t = static_cast<int32_t>(tap) * record.dilation[0];
      const int32_t at = t * record.x_strides[1] + r * record.x_strides[2] + s * record.x_strides[3] + c * record.x_channel;
      SPARKLE_UNROLL
      for (int i = 0; i < Rows::kOwn; ++i) {
        const Origin& o = origin[i];
        const bool valid = k + e < record.k && inside(o.d + t, record.x_size[0]) && inside(o.h + r, record.x_size[1]) &&
                           inside(o.w + s, record.x_size[2]);
        const uint32_t value = valid ? element_at(o.element + at) : outside;
        uint32_t& word = words[i].v[e / kPerWord];
        word = e % kPerWord == 0 ? value : word | value << (8 * kElement * (e % kPerWord));
      }
    }
    k += kBytes / kElement;
  }
  SPARKLE_DEVICE void put(SharedAddress tile) const {
    SPARKLE_UNROLL
    for (int i = 0; i < Rows::kOwn; ++i) store_shared_16(tile + to + i * (Rows::kApart * kBytes), words[i]);
  }
};

}  // namespace sparkle::cuda
