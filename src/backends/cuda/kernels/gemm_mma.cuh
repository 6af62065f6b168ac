// The product on Tensor Cores by mma.sync (sm_80 and later): a block's tile of y from a gathered left operand and filters,
// several tiles of k in flight by cp.async, a warp's part in its registers; bias, activation and residuals on the way out.
#pragma once

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/kernels/gemm_pipeline.cuh"
#include "backends/cuda/kernels/gemm_splits.cuh"
#include "backends/cuda/kernels/integers/zero_points.cuh"

namespace sparkle::cuda {

template <Operand kType, GemmLoader kLoader, int kM, int kN, int kBytes, int kWarpsM, int kWarpsN, int kStages>
struct GemmMma {
  // Sizes.
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN, kTilesM = kWarpM / 16, kTilesN = kWarpN / 8;
  static constexpr int kStageBytes = (kM + kN) * kBytes, kProducts = kBytes / 32;  // products deep
  static constexpr int kStripStride = kWarpN * 4 + 32;  // bytes between rows of sums on their way out: no bank twice
  static_assert(kTilesN % 2 == 0 && 16 * kStripStride * kWarpsM * kWarpsN <= (kStages < 2 ? 2 : kStages) * kStageBytes);
  using Sum = typename SumOf<kType>::Type;
  using Sums = Sum[kTilesM][kTilesN][4];
  using Pipeline = GemmPipeline<kType, kLoader, kM, kN, kBytes, kThreads, kStages>;

  // Where this lane's rows of ldmatrix lie: of A two groups of rows before the second chunk, of B two chunks before the next
  // rows.
  SPARKLE_DEVICE static uint32_t left_place(uint32_t warp_m) {
    const uint32_t lane = lane_id();
    return chunk_place<kBytes>(warp_m * kWarpM + lane % 16, lane / 16);
  }
  SPARKLE_DEVICE static uint32_t right_place(uint32_t warp_n) {
    const uint32_t lane = lane_id();
    return kM * kBytes + chunk_place<kBytes>(warp_n * kWarpN + lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }

  // What rows of signed bytes add up to in this lane, asked for where filters have zero points: rows lane / 4 and 8 further.
  struct RowSums {
    bool wanted = false;
    int32_t v[kTilesM][2] = {};
  };

  // A stage's products. Chunks are exchanged by exclusive or, so that the next 32 bytes of k are that of the address.
  SPARKLE_DEVICE static void multiply_stage(SharedAddress left, SharedAddress right, Sums& sums, const GemmRecord& record,
                                            RowSums& rows) {
    SPARKLE_UNROLL
    for (int k = 0; k < kProducts; ++k) {
      uint32_t a[kTilesM][4], b[kTilesN / 2][4];
      SPARKLE_UNROLL
      for (int i = 0; i < kTilesM; ++i) load_matrix_4(a[i], (left ^ (k * 32)) + i * (16 * kBytes));
      SPARKLE_UNROLL
      for (int j = 0; j < kTilesN / 2; ++j) load_matrix_4(b[j], (right ^ (k * 32)) + j * (16 * kBytes));
      SPARKLE_UNROLL
      for (int i = 0; i < kTilesM; ++i) {
        SPARKLE_UNROLL
        for (int r = 0; r < 4; ++r) {
          if constexpr (kType == Operand::tf32) a[i][r] = as_tf32(a[i][r]);
          if constexpr (kType == Operand::i8) a[i][r] ^= record.x_flip;
        }
      }
      if constexpr (kType == Operand::tf32) {
        if (record.w_unrounded) {
          SPARKLE_UNROLL
          for (int j = 0; j < kTilesN / 2; ++j) {
            SPARKLE_UNROLL
            for (int r = 0; r < 4; ++r) b[j][r] = as_tf32(b[j][r]);
          }
        }
      }
      if constexpr (kType == Operand::i8) {
        if (rows.wanted) {
          SPARKLE_UNROLL
          for (int i = 0; i < kTilesM; ++i) {
            SPARKLE_UNROLL
            for (int r = 0; r < 4; ++r) rows.v[i][r % 2] = sum_of_bytes(a[i][r], rows.v[i][r % 2]);
          }
        }
      }
      SPARKLE_UNROLL
      for (int i = 0; i < kTilesM; ++i) {
        SPARKLE_UNROLL
        for (int j = 0; j < kTilesN; ++j) multiply<kType>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

  // Takes them off the sums: each its share of the rows' bytes.
  SPARKLE_DEVICE static void take_zero_points(const GemmRecord& record, const TilePlace& tile, uint32_t warp_n, RowSums& rows,
                                              Sums& sums) {
    const int32_t channel = dot4(instance_of(record, block_z()).v, record.channel_instance);
    const int32_t first = tile.n * kN + static_cast<int32_t>(warp_n * kWarpN + lane_id() % 4 * 2);
    SPARKLE_UNROLL
    for (int i = 0; i < kTilesM; ++i) {
      SPARKLE_UNROLL
      for (int r = 0; r < 2; ++r) {
        for (const uint32_t mask : {1u, 2u})
          rows.v[i][r] += static_cast<int32_t>(shuffle_xor(static_cast<uint32_t>(rows.v[i][r]), mask));
      }
    }
    SPARKLE_UNROLL
    for (int j = 0; j < kTilesN; ++j) {
      SPARKLE_UNROLL
      for (int c = 0; c < 2; ++c) {
        const int32_t column = first + j * 8 + c;
        const int32_t zero = column < record.n ? w_zero_of(record, channel + column) : 0;
        SPARKLE_UNROLL
        for (int i = 0; i < kTilesM; ++i) {
          sums[i][j][c] -= zero * rows.v[i][0];
          sums[i][j][c + 2] -= zero * rows.v[i][1];
        }
      }
    }
  }

  SPARKLE_DEVICE static void run(const GemmRecord& record) {
    const SharedAddress shared = shared_base();
    const TilePlace tile = tile_place(record, static_cast<int32_t>(block_x()), record.tiles_m);
    const uint32_t warp = uniform(warp_id()), warp_m = warp / kWarpsN, warp_n = warp % kWarpsN;
    const uint32_t left = left_place(warp_m), right = right_place(warp_n);
    Sums sums = {};
    RowSums rows;
    if constexpr (kType == Operand::i8)
      rows.wanted = has_zero_points<kN>(record, dot4(instance_of(record, block_z()).v, record.channel_instance), tile.n * kN);
    Pipeline::run(record, shared, tile,
                  [&](SharedAddress stage) { multiply_stage(stage + left, stage + right, sums, record, rows); });
    if constexpr (kType == Operand::i8) {
      if (rows.wanted) take_zero_points(record, tile, warp_n, rows, sums);
    }
    if (record.splits > 1) {
      const int64_t number = int64_t{block_z()} * grid_x() + block_x();
      constexpr int kPieces = kTilesM * kTilesN;
      if (!add_splits<Sum, kPieces, kThreads>(record, number, static_cast<int32_t>(block_y()), thread_id(), shared,
                                              reinterpret_cast<Sum(&)[kPieces][4]>(sums), [] { sync_block(); })) {
        return;
      }
    }

    // Out, 16 rows of the warp at a time: fragments to shared memory, from there eight columns of a row a lane.
    constexpr int kLanes = kWarpN / 8, kRowsAtOnce = 32 / kLanes;  // lanes of a row
    const uint32_t lane = lane_id();
    const SharedAddress strip = shared + warp * (16 * kStripStride);
    const SharedAddress put = strip + lane / 4 * kStripStride + lane % 4 * 8;
    const SharedAddress take = strip + lane / kLanes * kStripStride + lane % kLanes * 32;
    Finish<kType> finish;
    finish.begin(record, tile.n * kN + static_cast<int32_t>(warp_n * kWarpN + lane % kLanes * 8), block_z());
    const int32_t first_row = tile.m * kM + static_cast<int32_t>(warp_m * kWarpM + lane / kLanes);
    SPARKLE_ROLLED
    for (int strip_number = 0; strip_number < kTilesM; ++strip_number) {
      SPARKLE_UNROLL
      for (int i = 0; i < kTilesM; ++i) {  // registers have no number at run time
        if (i != strip_number) continue;
        SPARKLE_UNROLL
        for (int j = 0; j < kTilesN; ++j) {
          const Sum(&s)[4] = sums[i][j];
          store_shared_8(put + j * 32, __builtin_bit_cast(uint32_t, s[0]), __builtin_bit_cast(uint32_t, s[1]));
          store_shared_8(put + j * 32 + 8 * kStripStride, __builtin_bit_cast(uint32_t, s[2]),
                         __builtin_bit_cast(uint32_t, s[3]));
        }
      }
      sync_warp();
      SPARKLE_ROLLED
      for (int r = 0; r < 16; r += kRowsAtOnce) {
        const Words4 low = load_shared_16(take + r * kStripStride), high = load_shared_16(take + r * kStripStride + 16);
        const uint32_t words[8] = {low.v[0], low.v[1], low.v[2], low.v[3], high.v[0], high.v[1], high.v[2], high.v[3]};
        finish.row(record, first_row + strip_number * 16 + r, words);
      }
      sync_warp();
    }
  }
};

}  // namespace sparkle::cuda
