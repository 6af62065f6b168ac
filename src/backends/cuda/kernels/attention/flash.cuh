// Attention on Tensor Cores by mma.sync (sm_80 and later): a block of queries over blocks of 64 keys. Left, the largest
// score and the sum of a row stay in registers, and what they were weighed by before is made good when a larger score comes.
#pragma once

#include "backends/cuda/kernels/attention/flash_rows.cuh"
#include "backends/cuda/kernels/attention/flash_scores.cuh"
#include "families/attention/flash_tiles.h"

namespace sparkle::cuda {

template <Operand kType, int kSize, bool kWide>
struct Flash {
  // Sizes. kTiles: of 16 queries, a warp's; kSteps: products deep, and pairs of eight columns.
  static constexpr int kKeys = kFlashKeys, kThreads = 32 * kFlashWarps, kTiles = kWide ? 2 : 1;
  static constexpr int kRows = 16 * kTiles, kQueries = flash_queries(kWide), kSteps = kSize / 16;
  using Rows = FlashRows<kSize, kThreads>;
  using Scores = FlashScores<kType, kTiles>;
  static constexpr bool kKeepsQueries = kSteps <= (kWide ? 1 : 8);  // in registers

  // Memory: queries, then two stages of keys and values, then, where there is one, the mask.
  static constexpr uint32_t kRowBytes = Rows::kBytes, kBlockBytes = kKeys * kRowBytes, kStageBytes = 2 * kBlockBytes;
  static constexpr uint32_t kStages = kQueries * kRowBytes;
  static_assert(kStages + kFlashStages * kStageBytes == flash_shared_bytes(kQueries, kSize, false));

  struct Left {
    uint32_t v[kTiles][4];
  };
  using Sums = float[kTiles][2 * kSteps][4];

  SPARKLE_DEVICE static void load_queries(Left& a, SharedAddress queries, int step) {
    SPARKLE_UNROLL
    for (int i = 0; i < kTiles; ++i) load_matrix_4(a.v[i], Rows::at_step(queries, step) + i * (16 * kRowBytes));
  }

  // Multiply: queries by keys.
  SPARKLE_DEVICE static void multiply_keys(SharedAddress queries, const Left (&kept)[kKeepsQueries ? kSteps : 1],
                                           SharedAddress keys, Scores& scores) {
    SPARKLE_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      Left read;
      if constexpr (!kKeepsQueries) load_queries(read, queries, step);
      const Left& a = kKeepsQueries ? kept[kKeepsQueries ? step : 0] : read;
      SPARKLE_UNROLL
      for (int j = 0; j < kKeys / 16; ++j) {
        uint32_t b[4];
        load_matrix_4(b, Rows::at_step(keys, step) + j * (16 * kRowBytes));
        SPARKLE_UNROLL
        for (int i = 0; i < kTiles; ++i) {
          multiply<kType>(scores.v[i][2 * j], a.v[i], b[0], b[1]);
          multiply<kType>(scores.v[i][2 * j + 1], a.v[i], b[2], b[3]);
        }
      }
    }
  }
  // Weights by values: two tiles of scores lie in registers as one left operand.
  SPARKLE_DEVICE static void multiply_values(const Scores& weights, SharedAddress values, Sums& sums) {
    SPARKLE_UNROLL
    for (int k = 0; k < kKeys / 16; ++k) {
      Left a;
      SPARKLE_UNROLL
      for (int i = 0; i < kTiles; ++i) weights.operand(a.v[i], i, k);
      SPARKLE_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        uint32_t b[4];
        load_matrix_4_transposed(b, Rows::at_step(values, step) + k * (16 * kRowBytes));
        SPARKLE_UNROLL
        for (int i = 0; i < kTiles; ++i) {
          multiply<kType>(sums[i][2 * step], a.v[i], b[0], b[1]);
          multiply<kType>(sums[i][2 * step + 1], a.v[i], b[2], b[3]);
        }
      }
    }
  }

  SPARKLE_DEVICE static void run(const AttentionRecord& record) {
    const SharedAddress shared = shared_base();
    uint32_t batch = block_x();
    // Where later queries see more keys their blocks come first.
    const auto block = static_cast<int32_t>(record.blocks.size - 1 - fast_divmod(batch, record.blocks));
    const AttentionPlaces at = places_of(record, batch);
    const SeenRange range = seen_range(record, at);
    const int32_t queries = static_cast<int32_t>(record.queries.size), first_query = block * kQueries;
    const auto kept_query = [&](int32_t query) { return query < queries ? query : queries - 1; };
    const int32_t first = range.of(first_query).begin, last = range.of(kept_query(first_query + kQueries - 1)).end;

    const uint32_t lane = lane_id(), warp = uniform(warp_id());
    const int32_t warp_query = first_query + static_cast<int32_t>(warp * kRows);
    const int32_t warp_first = range.of(kept_query(warp_query)).begin,
                  warp_last = range.of(kept_query(warp_query + kRows - 1)).end;
    const int32_t seen_first = range.of(kept_query(warp_query + kRows - 1)).begin,
                  seen_last = range.of(kept_query(warp_query)).end;  // by each query of the warp
    // Lanes' rows of ldmatrix: 16 rows before the second chunk, but of keys two chunks before the next eight.
    const SharedAddress own_queries = shared + warp * (kRows * kRowBytes);
    const SharedAddress queries_at = own_queries + Rows::place(lane % 16, lane / 16);
    const uint32_t keys_at = Rows::place(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    const uint32_t values_at = kBlockBytes + Rows::place(lane % 16, lane / 16);
    const SharedAddress masks = shared + kStages + kFlashStages * kStageBytes + warp * (kRows * kFlashMaskRow);

    // Load.
    const auto load_block = [&](int32_t key, SharedAddress stage) {
      Rows::template load<kKeys>(record, AttentionOperand::kKeys, at, key, last, record.depth, stage);
      Rows::template load<kKeys>(record, AttentionOperand::kValues, at, key, last, record.columns, stage + kBlockBytes);
      commit_copies();
    };
    SharedAddress now = shared + kStages, next = now + kStageBytes;
    if (first < last) {
      Rows::template load<kQueries>(record, AttentionOperand::kQueries, at, first_query, queries, record.depth, shared);
      load_block(first, now);
    }

    Left kept[kKeepsQueries ? kSteps : 1];
    Sums sums = {};
    FlashTotals<kTiles> totals;
    SPARKLE_ROLLED
    for (int32_t key = first; key < last; key += kKeys) {
      wait_copies<0>();
      sync_block();
      if constexpr (kKeepsQueries) {
        if (key == first) {
          SPARKLE_UNROLL
          for (int step = 0; step < kSteps; ++step) load_queries(kept[step], queries_at, step);
        }
      }
      if (key + kKeys < last) load_block(key + kKeys, next);
      if (key < warp_last && key + kKeys > warp_first) {
        if (record.at[kMask] != nullptr) load_mask<kRows>(record, at, range, warp_query, key, masks);
        Scores scores = {};
        multiply_keys(queries_at, kept, now + keys_at, scores);
        scores.finish(record, range, warp_query, key, key < seen_first || key + kKeys > seen_last, masks);
        float rescale[kTiles][2];
        const bool is_larger = totals.weigh(record.factor, scores, rescale);
        if (ballot(is_larger) != 0) {
          SPARKLE_UNROLL
          for (int i = 0; i < kTiles; ++i) {
            SPARKLE_UNROLL
            for (int j = 0; j < 2 * kSteps; ++j) {
              SPARKLE_UNROLL
              for (int r = 0; r < 4; ++r) sums[i][j][r] *= rescale[i][r / 2];
            }
          }
        }
        multiply_values(scores, now + values_at, sums);
      }
      const SharedAddress before = now;
      now = next, next = before;
    }

    // Epilogue: each row by what its weights add up to, in the place of the warp's queries.
    SPARKLE_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      SPARKLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float factor = totals.inverse(i, half, record.unseen_is_nan);
        const uint32_t row = static_cast<uint32_t>(16 * i + 8 * half) + lane / 4;
        SPARKLE_UNROLL
        for (int j = 0; j < 2 * kSteps; ++j) {
          const uint32_t pair = pair_of<kType>(sums[i][j][2 * half] * factor, sums[i][j][2 * half + 1] * factor);
          store_shared_4(own_queries + Rows::place(row, static_cast<uint32_t>(j)) + lane % 4 * 4, pair);
        }
      }
    }
    sync_warp();
    // Store.
    Rows::template store<kRows>(record, at, warp_query, queries, own_queries);
  }
};

}  // namespace sparkle::cuda
