// The product in strict fp32 on CUDA cores: fused multiply-adds alone, sums in the order of k. A thread has 8 rows by 8 columns
// of the tile, apart from each other so that the lanes of a warp read neighbouring rows of shared memory, four of k by a load
// of 16 bytes.
#pragma once

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/kernels/gemm_pipeline.cuh"
#include "backends/cuda/kernels/gemm_splits.cuh"
#include "backends/cuda/kernels/gemm_variants.h"

namespace sparkle::cuda {

template <GemmLoader kLoader, int kWarpsM, int kWarpsN, int kStages>
struct GemmFma {
  // Sizes. Lanes of a warp: 4 along m, 8 along n.
  static constexpr int kRows = 8, kColumns = 8, kWarpM = 4 * kRows, kWarpN = 8 * kColumns;
  static constexpr int kM = kWarpsM * kWarpM, kN = kWarpsN * kWarpN, kThreads = 32 * kWarpsM * kWarpsN, kBytes = kFmaBytes;
  static constexpr int kStripStride = kWarpN * 4 + 16;  // bytes between rows of sums on their way out
  using Pipeline = GemmPipeline<Operand::f32, kLoader, kM, kN, kBytes, kThreads, kStages>;
  static_assert(4 * kStripStride * kWarpsM * kWarpsN <= kStages * Pipeline::kStageBytes);
  using Sums = float[kRows][kColumns];

  SPARKLE_DEVICE static void multiply_stage(SharedAddress left, uint32_t row, SharedAddress right, uint32_t column,
                                            Sums& sums) {
    SPARKLE_ROLLED  // unrolled, all loads come first and registers spill
        for (int chunk = 0; chunk < kBytes / 16; ++chunk) {
      Words4 a[kRows];
      SPARKLE_UNROLL
      for (int i = 0; i < kRows; ++i) a[i] = load_shared_16(left + chunk_place<kBytes>(row + 4 * i, chunk));
      SPARKLE_UNROLL
      for (int j = 0; j < kColumns; ++j) {
        const Words4 b = load_shared_16(right + chunk_place<kBytes>(column + 8 * j, chunk));
        SPARKLE_UNROLL
        for (int k = 0; k < 4; ++k) {
          SPARKLE_UNROLL
          for (int i = 0; i < kRows; ++i) sums[i][j] += float_of(a[i].v[k]) * float_of(b.v[k]);
        }
      }
    }
  }

  SPARKLE_DEVICE static void run(const GemmRecord& record) {
    const SharedAddress shared = shared_base();
    const TilePlace tile = tile_place(record, static_cast<int32_t>(block_x()), record.tiles_m);
    const uint32_t warp = uniform(warp_id()), warp_m = warp / kWarpsN, warp_n = warp % kWarpsN, lane = lane_id();
    const uint32_t row = warp_m * kWarpM + lane / 8, column = warp_n * kWarpN + lane % 8;
    Sums sums = {};
    Pipeline::run(record, shared, tile,
                  [&](SharedAddress stage) { multiply_stage(stage, row, stage + Pipeline::kLeftBytes, column, sums); });
    if (record.splits > 1) {
      const int64_t number = int64_t{block_z()} * grid_x() + block_x();
      constexpr int kPieces = kRows * kColumns / 4;
      if (!add_splits<float, kPieces, kThreads>(record, number, static_cast<int32_t>(block_y()), thread_id(), shared,
                                                reinterpret_cast<float(&)[kPieces][4]>(sums), [] { sync_block(); })) {
        return;
      }
    }

    // Out, 4 rows of the warp at a time; from shared memory eight neighbouring columns a lane.
    const SharedAddress strip = shared + warp * (4 * kStripStride);
    const SharedAddress put = strip + lane / 8 * kStripStride + lane % 8 * 4,
                        take = strip + lane / 8 * kStripStride + lane % 8 * 32;
    Finish<Operand::f32> finish;
    finish.begin(record, tile.n * kN + static_cast<int32_t>(warp_n * kWarpN + lane % 8 * 8), block_z());
    SPARKLE_ROLLED
    for (int strip_number = 0; strip_number < kRows; ++strip_number) {
      SPARKLE_UNROLL
      for (int i = 0; i < kRows; ++i) {  // registers have no number at run time
        if (i != strip_number) continue;
        SPARKLE_UNROLL
        for (int j = 0; j < kColumns; ++j) store_shared_4(put + j * 32, bits_of(sums[i][j]));
      }
      sync_warp();
      const Words4 low = load_shared_16(take), high = load_shared_16(take + 16);
      const uint32_t words[8] = {low.v[0], low.v[1], low.v[2], low.v[3], high.v[0], high.v[1], high.v[2], high.v[3]};
      finish.row(record, tile.m * kM + static_cast<int32_t>(row) + 4 * strip_number, words);
      sync_warp();
    }
  }
};

}  // namespace sparkle::cuda
