// Attention in fp32 on CUDA cores: a block of 64 queries over blocks of 64 or 32 keys. A row of queries is 16 lanes', so that
// its scores, their largest and their sum stay within half a warp. Keys come while values are multiplied, and the other way
// round.
#pragma once

#include "backends/cuda/kernels/attention/attention_index.cuh"
#include "backends/cuda/kernels/elements/elements.cuh"
#include "families/attention/flash_tiles.h"

namespace sparkle::cuda {

template <int kSize>
struct FlashFma {
  // Sizes: a thread has kOwn queries by every 16th key and kVectors times four columns.
  static constexpr int kThreads = kFlashFmaThreads, kQueries = kFlashFmaQueries, kKeys = flash_fma_keys(kSize);
  static constexpr int kOwn = 4, kOwnKeys = kKeys / 16, kVectors = kSize / 64;
  static_assert(kThreads == kQueries / kOwn * 16);
  static constexpr uint32_t kWeightRow = flash_fma_row_bytes(kKeys);

  // kRows rows of an operand from `row` on, those from `end` on as zeros; `width` floats, filled up to a whole chunk.
  template <int kRows>
  SPARKLE_DEVICE static void load(const AttentionRecord& record, AttentionOperand operand, const AttentionPlaces& at,
                                  int32_t row, int32_t end, int32_t width, uint32_t row_bytes, SharedAddress tile) {
    const int32_t row_stride = record.row_strides[operand], column_stride = record.column_strides[operand];
    const auto* from = static_cast<const float*>(record.at[operand]) + at.v[operand];
    // A row is eight lanes' at a time: 128 bytes.
    SPARKLE_ROLLED
    for (auto r = static_cast<int32_t>(thread_id() / 8); r < kRows; r += kThreads / 8) {
      const float* const of_row = from + int64_t{row + r} * row_stride;
      const bool is_there = row + r < end;
      SPARKLE_ROLLED
      for (auto column = static_cast<int32_t>(thread_id() % 8 * 4); column < width; column += 32) {
        const SharedAddress to = tile + static_cast<uint32_t>(r) * row_bytes + static_cast<uint32_t>(column) * 4;
        if (record.in_chunks[operand]) {
          copy_async_16(to, of_row + column, is_there ? 16 : 0);
          continue;
        }
        Words4 words = {};
        SPARKLE_UNROLL
        for (int e = 0; e < 4; ++e) {
          if (is_there && column + e < width) words.v[e] = bits_of(load_global(of_row + int64_t{column + e} * column_stride));
        }
        store_shared_16(to, words);
      }
    }
  }

  using Scores = float[kOwn][kOwnKeys];
  using Sums = float[kOwn][kVectors][4];

  // Multiply: queries by keys, four floats of depth at once.
  SPARKLE_DEVICE static void multiply_keys(SharedAddress queries, SharedAddress keys, uint32_t row_bytes, int32_t depth,
                                           Scores& scores) {
    SPARKLE_ROLLED
    for (int32_t d = 0; d < depth; d += 4, queries += 16, keys += 16) {
      Words4 q[kOwn], k[kOwnKeys];
      SPARKLE_UNROLL
      for (int i = 0; i < kOwn; ++i) q[i] = load_shared_16(queries + static_cast<uint32_t>(i) * row_bytes);
      SPARKLE_UNROLL
      for (int j = 0; j < kOwnKeys; ++j) k[j] = load_shared_16(keys + static_cast<uint32_t>(16 * j) * row_bytes);
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        SPARKLE_UNROLL
        for (int i = 0; i < kOwn; ++i) {
          SPARKLE_UNROLL
          for (int j = 0; j < kOwnKeys; ++j) scores[i][j] += float_of(q[i].v[e]) * float_of(k[j].v[e]);
        }
      }
    }
  }
  // Weights by values, four keys at once. `columns`: bytes from a row's beginning to this lane's.
  SPARKLE_DEVICE static void multiply_values(SharedAddress weights, SharedAddress values, uint32_t row_bytes,
                                             const uint32_t (&columns)[kVectors], Sums& sums) {
    SPARKLE_ROLLED
    for (int key = 0; key < kKeys; key += 4, weights += 16) {
      Words4 w[kOwn];
      SPARKLE_UNROLL
      for (int i = 0; i < kOwn; ++i) w[i] = load_shared_16(weights + static_cast<uint32_t>(i) * kWeightRow);
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        SPARKLE_UNROLL
        for (int n = 0; n < kVectors; ++n) {
          const Words4 v = load_shared_16(values + columns[n]);
          SPARKLE_UNROLL
          for (int i = 0; i < kOwn; ++i) {
            SPARKLE_UNROLL
            for (int c = 0; c < 4; ++c) sums[i][n][c] += float_of(w[i].v[e]) * float_of(v.v[c]);
          }
        }
        values += row_bytes;
      }
    }
  }

  // From a product to what softmax is taken of, in units of 1 / record.factor.
  SPARKLE_DEVICE static float finished(const AttentionRecord& record, const AttentionPlaces& at, const SeenKeys& seen,
                                       int32_t query, int32_t key, float score) {
    if (!record.is_linear) score *= record.scale;
    if (record.softcap > 0) score = record.softcap * std::tanh(score / record.softcap);
    if (key < seen.begin || key >= seen.end) return -INFINITY;
    if (record.at[kMask] == nullptr) return score;
    const int64_t place =
        at.v[kMask] + int64_t{query} * record.row_strides[kMask] + int64_t{key} * record.column_strides[kMask];
    if (static_cast<DType>(record.type[kMask]) != DType::boolean)
      return score + load_global(static_cast<const float*>(record.at[kMask]) + place);
    return load_global(static_cast<const uint8_t*>(record.at[kMask]) + place) != 0 ? score : -INFINITY;
  }

  SPARKLE_DEVICE static void run(const AttentionRecord& record) {
    // Memory.
    const uint32_t depth_row = static_cast<uint32_t>(flash_fma_row_bytes(record.depth)),
                   column_row = static_cast<uint32_t>(flash_fma_row_bytes(record.columns));
    const SharedAddress query_rows = shared_base(), key_rows = query_rows + kQueries * depth_row,
                        value_rows = key_rows + kKeys * depth_row, weight_rows = value_rows + kKeys * column_row;
    uint32_t batch = block_x();
    const auto block = static_cast<int32_t>(record.blocks.size - 1 - fast_divmod(batch, record.blocks));
    const AttentionPlaces at = places_of(record, batch);
    const SeenRange range = seen_range(record, at);
    const int32_t queries = static_cast<int32_t>(record.queries.size), first_query = block * kQueries;
    const int32_t last_query = first_query + kQueries < queries ? first_query + kQueries - 1 : queries - 1;
    const int32_t first = range.of(first_query).begin, last = range.of(last_query).end;
    const uint32_t lane = thread_id() % 16, own_row = thread_id() / 16 * kOwn;
    const int32_t own_query = first_query + static_cast<int32_t>(own_row);
    const SharedAddress own_weights = weight_rows + own_row * kWeightRow;
    uint32_t columns[kVectors];  // those that there are not are the first ones again
    SPARKLE_UNROLL
    for (int n = 0; n < kVectors; ++n) {
      const uint32_t column = lane * 4 + static_cast<uint32_t>(64 * n);
      columns[n] = column < static_cast<uint32_t>(record.columns) ? column * 4 : 0;
    }

    // Load.
    if (first < last) {
      load<kQueries>(record, AttentionOperand::kQueries, at, first_query, queries, record.depth, depth_row, query_rows);
      load<kKeys>(record, AttentionOperand::kKeys, at, first, last, record.depth, depth_row, key_rows);
      commit_copies();
    }
    Sums sums = {};
    float largest[kOwn], shift[kOwn] = {}, sum[kOwn] = {};
    SPARKLE_UNROLL
    for (int i = 0; i < kOwn; ++i) largest[i] = -INFINITY;
    SPARKLE_ROLLED
    for (int32_t key = first; key < last; key += kKeys) {
      wait_copies<0>();
      sync_block();  // keys are there, and the values before have been multiplied
      load<kKeys>(record, AttentionOperand::kValues, at, key, last, record.columns, column_row, value_rows);
      commit_copies();
      Scores scores = {};
      multiply_keys(query_rows + own_row * depth_row, key_rows + lane * depth_row, depth_row, record.depth, scores);
      SPARKLE_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        const int32_t query = own_query + i;
        SeenKeys seen = range.of(query);
        if (query >= queries) seen.end = seen.begin;
        float most = largest[i];
        SPARKLE_UNROLL
        for (int j = 0; j < kOwnKeys; ++j) {
          scores[i][j] = finished(record, at, seen, query, key + static_cast<int32_t>(lane) + 16 * j, scores[i][j]);
          most = larger_of(most, scores[i][j]);
        }
        for (const uint32_t lanes : {1u, 2u, 4u, 8u}) most = larger_of(most, shuffle_xor(most, lanes));
        const float now = shift_of(most, record.factor), rescale = rescale_of(largest[i], shift[i], now);
        largest[i] = most, shift[i] = now;
        sum[i] *= rescale;
        SPARKLE_UNROLL
        for (int j = 0; j < kOwnKeys; ++j) {
          const float weight = exp2_of(multiply_add(scores[i][j], record.factor, -now));
          sum[i] += weight;
          store_shared_4(own_weights + static_cast<uint32_t>(i) * kWeightRow + (lane + static_cast<uint32_t>(16 * j)) * 4,
                         bits_of(weight));
        }
        SPARKLE_UNROLL
        for (int n = 0; n < kVectors; ++n) {
          SPARKLE_UNROLL
          for (int c = 0; c < 4; ++c) sums[i][n][c] *= rescale;
        }
      }
      wait_copies<0>();
      sync_block();  // values are there, and keys have been multiplied
      if (key + kKeys < last) {
        load<kKeys>(record, AttentionOperand::kKeys, at, key + kKeys, last, record.depth, depth_row, key_rows);
        commit_copies();
      }
      multiply_values(own_weights, value_rows, column_row, columns, sums);
    }

    // Epilogue and store.
    auto* const to = static_cast<float*>(const_cast<void*>(record.at[kResult])) + at.v[kResult];
    const int64_t row_stride = record.row_strides[kResult], column_stride = record.column_strides[kResult];
    SPARKLE_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      float total = sum[i];
      for (const uint32_t lanes : {1u, 2u, 4u, 8u}) total += shuffle_xor(total, lanes);
      const float inverse = total == 0 ? (record.unseen_is_nan ? NAN : 0) : 1 / total;
      if (own_query + i >= queries) continue;
      float* const row = to + (own_query + i) * row_stride;
      SPARKLE_UNROLL
      for (int n = 0; n < kVectors; ++n) {
        const int32_t column = static_cast<int32_t>(lane * 4) + 64 * n;
        Words4 words;
        SPARKLE_UNROLL
        for (int c = 0; c < 4; ++c) words.v[c] = bits_of(sums[i][n][c] * inverse);
        if (record.in_chunks[kResult]) {
          if (column < record.columns) store_global(reinterpret_cast<Words4*>(row + column), words);
          continue;
        }
        SPARKLE_UNROLL
        for (int c = 0; c < 4; ++c) {
          if (column + c < record.columns) store_global(row + (column + c) * column_stride, float_of(words.v[c]));
        }
      }
    }
  }
};

}  // namespace sparkle::cuda
