// Rows of 16-bit elements between memory and shared memory, filled up with zeros to kSize columns; chunks of 16 bytes are
// exchanged so that neither a copy nor ldmatrix meets a bank twice in eight rows.
#pragma once

#include "backends/cuda/kernels/attention/attention_index.cuh"
#include "backends/cuda/ptx/matrix.cuh"

namespace sparkle::cuda {

template <int kSize, int kThreads>
struct FlashRows {
  static constexpr uint32_t kBytes = 2 * kSize, kChunks = kSize / 8;
  // Eight rows begin in two, four or eight different places of 128 bytes; exchanging 8, 4 or 2 chunks makes them eight.
  static constexpr uint32_t kExchanged = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;
  static constexpr uint32_t kAlike = 8 / kExchanged;  // rows in a row that exchange alike
  // A thread has one column of each kExchanged chunks, and several rows.
  static constexpr uint32_t kApart = kThreads / kExchanged, kGroups = kChunks / kExchanged;
  static_assert(kChunks % 2 == 0 && kApart % 8 == 0);

  SPARKLE_DEVICE static uint32_t place(uint32_t row, uint32_t chunk) {
    return row * kBytes + ((chunk ^ (row / kAlike % kExchanged)) << 4);
  }
  // From the place of chunk 0 or 1 to that of the chunk two times `step` further.
  SPARKLE_DEVICE static SharedAddress at_step(SharedAddress at, int step) {
    const uint32_t chunk = 2 * static_cast<uint32_t>(step);
    return (at ^ (chunk % kExchanged * 16)) + chunk / kExchanged * kExchanged * 16;
  }

  // kRows rows of an operand from `row` on, those from `end` on as zeros.
  template <int kRows>
  SPARKLE_DEVICE static void load(const AttentionRecord& record, AttentionOperand operand, const AttentionPlaces& at,
                                  int32_t row, int32_t end, int32_t width, SharedAddress tile) {
    const uint32_t own_row = thread_id() / kExchanged, own_chunk = thread_id() % kExchanged;
    const int32_t row_stride = record.row_strides[operand];
    const auto* from = static_cast<const uint16_t*>(record.at[operand]) + at.v[operand] +
                       int64_t{row + static_cast<int32_t>(own_row)} * row_stride;
    tile += place(own_row, own_chunk);
    row += static_cast<int32_t>(own_row);
    const auto first = static_cast<int32_t>(own_chunk * 8);
    if (record.in_chunks[operand]) {
      SPARKLE_UNROLL
      for (uint32_t i = 0; i < (kRows + kApart - 1) / kApart; ++i) {
        if (kRows % kApart != 0 && own_row + i * kApart >= kRows) break;
        const bool is_there = row + static_cast<int32_t>(i * kApart) < end;
        SPARKLE_UNROLL
        for (uint32_t group = 0; group < kGroups; ++group) {
          const int32_t column = first + static_cast<int32_t>(group * kExchanged * 8);
          copy_async_16(tile + i * kApart * kBytes + group * kExchanged * 16, from + column,
                        is_there && column < width ? 16 : 0);
        }
        from += int64_t{row_stride} * static_cast<int32_t>(kApart);
      }
    } else {
      const int32_t column_stride = record.column_strides[operand];
      SPARKLE_ROLLED
      for (uint32_t i = own_row; i < kRows; i += kApart) {
        SPARKLE_ROLLED
        for (uint32_t group = 0; group < kGroups; ++group) {
          Words4 words = {};
          SPARKLE_UNROLL
          for (int e = 0; e < 8; ++e) {
            const int32_t column = first + static_cast<int32_t>(group * kExchanged * 8) + e;
            const bool is_there = row < end && column < width;
            const uint32_t value = is_there ? load_global(from + int64_t{column} * column_stride) : 0u;
            words.v[e / 2] |= value << (e % 2 * 16);
          }
          store_shared_16(tile + group * kExchanged * 16, words);
        }
        tile += kApart * kBytes, row += static_cast<int32_t>(kApart);
        from += int64_t{row_stride} * static_cast<int32_t>(kApart);
      }
    }
  }

  // A warp's kRows rows of the result, from `query` on.
  template <int kRows>
  SPARKLE_DEVICE static void store(const AttentionRecord& record, const AttentionPlaces& at, int32_t query, int32_t queries,
                                   SharedAddress rows) {
    auto* to = static_cast<uint16_t*>(const_cast<void*>(record.at[kResult])) + at.v[kResult];
    const int32_t row_stride = record.row_strides[kResult], column_stride = record.column_strides[kResult];
    SPARKLE_ROLLED
    for (uint32_t i = lane_id(); i < kRows * kChunks; i += 32) {
      const uint32_t own_row = i / kChunks, chunk = i % kChunks;
      const int32_t row = query + static_cast<int32_t>(own_row), column = static_cast<int32_t>(chunk * 8);
      if (row >= queries || column >= record.columns) continue;
      const Words4 words = load_shared_16(rows + place(own_row, chunk));
      uint16_t* first = to + int64_t{row} * row_stride + int64_t{column} * column_stride;
      if (record.in_chunks[kResult]) {
        store_global(reinterpret_cast<Words4*>(first), words);
        continue;
      }
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) {
        if (column + e < record.columns)
          store_global(first + int64_t{e} * column_stride, static_cast<uint16_t>(words.v[e / 2] >> (e % 2 * 16)));
      }
    }
  }
};

}  // namespace sparkle::cuda
