// A warp's scores of 64 keys in the registers that its products left them in: what is not seen is hidden, and the rest becomes
// weights against the largest score of its row so far. A lane has keys 8 * j + 2 * (lane % 4) and the one after of the rows
// lane / 4 and lane / 4 + 8 of each tile.
#pragma once

#include "backends/cuda/kernels/attention/attention_index.cuh"
#include "backends/cuda/ptx/matrix.cuh"
#include "base/dtype.h"
#include "families/attention/flash_tiles.h"

namespace sparkle::cuda {

// Two floats rounded to the operand's type.
template <Operand kType>
SPARKLE_DEVICE uint32_t pair_of(float low, float high) {
  static_assert(kType == Operand::f16 || kType == Operand::bf16);
  return kType == Operand::f16 ? halfs_of(low, high) : bfloats_of(low, high);
}

// A warp's rows of the mask tensor for 64 keys come to shared memory as 16-bit floats to be added; what a query does not see is
// kFlashHidden, a NaN that no mask keeps.
inline constexpr uint16_t kFlashHidden = 0xffff;
template <class Element>
SPARKLE_DEVICE uint32_t mask_bits(const Element* from) {
  const uint32_t bits = load_global(from);
  if constexpr (sizeof(Element) == 1) return bits != 0 ? 0 : kFlashHidden;
  return bits == kFlashHidden ? kFlashHidden - 1 : bits;
}
template <class Element, int kRows>
SPARKLE_DEVICE void load_mask_of(const AttentionRecord& record, const AttentionPlaces& at, const SeenRange& range,
                                 int32_t warp_query, int32_t key, SharedAddress masks) {
  constexpr int kAtOnce = 4;
  const int32_t queries = static_cast<int32_t>(record.queries.size), own_key = key + static_cast<int32_t>(lane_id() * 2);
  const int64_t row_stride = record.row_strides[kMask], column_stride = record.column_strides[kMask];
  const auto* from =
      static_cast<const Element*>(record.at[kMask]) + at.v[kMask] + warp_query * row_stride + own_key * column_stride;
  SPARKLE_ROLLED
  for (int32_t row = 0; row < kRows; row += kAtOnce) {
    uint32_t pairs[kAtOnce];
    SPARKLE_UNROLL
    for (int32_t i = 0; i < kAtOnce; ++i) {
      const int32_t query = warp_query + row + i;
      SeenKeys seen = range.of(query);
      if (query >= queries) seen.end = seen.begin;
      const uint32_t low = own_key >= seen.begin && own_key < seen.end ? mask_bits(from) : kFlashHidden;
      const uint32_t high =
          own_key + 1 >= seen.begin && own_key + 1 < seen.end ? mask_bits(from + column_stride) : kFlashHidden;
      pairs[i] = low | high << 16;
      from += row_stride;
    }
    SPARKLE_UNROLL
    for (int i = 0; i < kAtOnce; ++i)
      store_shared_4(masks + static_cast<uint32_t>(row + i) * kFlashMaskRow + lane_id() * 4, pairs[i]);
  }
}
template <int kRows>
SPARKLE_DEVICE void load_mask(const AttentionRecord& record, const AttentionPlaces& at, const SeenRange& range,
                              int32_t warp_query, int32_t key, SharedAddress masks) {
  sync_warp();  // those before it have been read
  if (static_cast<DType>(record.type[kMask]) == DType::boolean) {
    load_mask_of<uint8_t, kRows>(record, at, range, warp_query, key, masks);
  } else {
    load_mask_of<uint16_t, kRows>(record, at, range, warp_query, key, masks);
  }
  sync_warp();
}

template <Operand kType, int kTiles>
struct FlashScores {
  static constexpr int kTilesOfKeys = 8;
  float v[kTiles][kTilesOfKeys][4];

  // Every score with its query and key, those of a lane.
  template <class Act>
  SPARKLE_DEVICE void each(int32_t warp_query, int32_t key, Act&& act) {
    SPARKLE_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      SPARKLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int32_t query = warp_query + 16 * i + 8 * half + static_cast<int32_t>(lane_id() / 4);
        auto row = act(query);
        SPARKLE_UNROLL
        for (int j = 0; j < kTilesOfKeys; ++j) {
          SPARKLE_UNROLL
          for (int c = 0; c < 2; ++c) row(v[i][j][2 * half + c], key + 8 * j + static_cast<int32_t>(lane_id() % 4 * 2) + c);
        }
      }
    }
  }

  // From products to what softmax is taken of, in units of 1 / record.factor. `is_edge`: not every query sees all of the keys.
  // `masks`: the warp's, where there are some.
  SPARKLE_DEVICE void finish(const AttentionRecord& record, const SeenRange& range, int32_t warp_query, int32_t key,
                             bool is_edge, SharedAddress masks) {
    if (!record.is_linear) {
      each(warp_query, key, [&](int32_t) { return [&](float& score, int32_t) { score *= record.scale; }; });
      if (record.softcap > 0) {
        // tanh(x) = 1 - 2 / (e^2x + 1).
        constexpr float kTwoLog2E = 2.885390082f;
        const float inverse = kTwoLog2E / record.softcap;
        each(warp_query, key, [&](int32_t) {
          return [&](float& score, int32_t) {
            score = record.softcap * multiply_add(-2, reciprocal_of(exp2_of(score * inverse) + 1), 1);
          };
        });
      }
    }
    if (record.at[kMask] != nullptr) {
      add_mask(masks);
    } else if (is_edge) {
      each(warp_query, key, [&](int32_t query) {
        const SeenKeys seen = range.of(query);
        return [seen](float& score, int32_t k) {
          if (k < seen.begin || k >= seen.end) score = -INFINITY;
        };
      });
    }
  }

  SPARKLE_DEVICE void add_mask(SharedAddress masks) {
    const SharedAddress own = masks + lane_id() / 4 * kFlashMaskRow + lane_id() % 4 * 4;
    SPARKLE_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      SPARKLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        SPARKLE_UNROLL
        for (int j = 0; j < kTilesOfKeys; ++j) {
          const uint32_t pair = load_shared_4(own + (16 * i + 8 * half) * kFlashMaskRow + j * 16);
          SPARKLE_UNROLL
          for (int c = 0; c < 2; ++c) {
            float& score = v[i][j][2 * half + c];
            const auto bits = static_cast<uint16_t>(pair >> (16 * c));
            const float mask = kType == Operand::f16 ? float_of_half(bits) : float_of_bfloat(bits);
            score = bits == kFlashHidden ? -INFINITY : score + mask;
          }
        }
      }
    }
  }

  // The left operand of 16 keys' weights.
  SPARKLE_DEVICE void operand(uint32_t (&a)[4], int tile, int keys) const {
    SPARKLE_UNROLL
    for (int r = 0; r < 4; ++r) {
      const float(&pairs)[4] = v[tile][2 * keys + r / 2];
      a[r] = pair_of<kType>(pairs[r % 2 * 2], pairs[r % 2 * 2 + 1]);
    }
  }
};

// The largest score of each row so far, the same in its four lanes, and the sum of each lane's weights.
template <int kTiles>
struct FlashTotals {
  float largest[kTiles][2], shift[kTiles][2], sum[kTiles][2];

  SPARKLE_DEVICE FlashTotals() {
    SPARKLE_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      SPARKLE_UNROLL
      for (int half = 0; half < 2; ++half) largest[i][half] = -INFINITY, shift[i][half] = sum[i][half] = 0;
    }
  }
  // Scores become weights. What was weighed before is to be multiplied by `rescale`; false: by one. A score that is no number
  // makes such a weight, and an infinite one too, as infinity is taken off it.
  template <class Scores>
  SPARKLE_DEVICE bool weigh(float factor, Scores& scores, float (&rescale)[kTiles][2]) {
    bool is_larger = false;
    SPARKLE_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      SPARKLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        float most = largest[i][half];
        SPARKLE_UNROLL
        for (int j = 0; j < Scores::kTilesOfKeys; ++j)
          most = larger_of(most, larger_of(scores.v[i][j][2 * half], scores.v[i][j][2 * half + 1]));
        for (const uint32_t lanes : {1u, 2u}) most = larger_of(most, shuffle_xor(most, lanes));
        const float before = shift[i][half], now = shift_of(most, factor);
        rescale[i][half] = rescale_of(largest[i][half], before, now);
        is_larger = is_larger || most != largest[i][half];
        largest[i][half] = most, shift[i][half] = now;
        float total = 0;
        SPARKLE_UNROLL
        for (int j = 0; j < Scores::kTilesOfKeys; ++j) {
          SPARKLE_UNROLL
          for (int c = 0; c < 2; ++c) {
            float& score = scores.v[i][j][2 * half + c];
            score = exp2_of(multiply_add(score, factor, -now));
            total += score;
          }
        }
        sum[i][half] = multiply_add(sum[i][half], rescale[i][half], total);
      }
    }
    return is_larger;
  }
  // What a row is multiplied by in the end.
  SPARKLE_DEVICE float inverse(int tile, int half, bool unseen_is_nan) const {
    float total = sum[tile][half];
    for (const uint32_t lanes : {1u, 2u}) total += shuffle_xor(total, lanes);
    return total == 0 ? (unseen_is_nan ? NAN : 0) : 1 / total;
  }
};

}  // namespace sparkle::cuda
