// The product in strict fp32 on CUDA cores: a block's tile of y from a gathered left operand and filters, several tiles of k in flight
// by cp.async. A thread sums some rows by eight neighbouring columns; its rows and columns lie in shared memory as k by k, so
// that a load of 16 bytes brings four steps of one. Never on Tensor Cores, never rounded. Operands of 16 bits are widened as they
// leave shared memory: what the same layer takes without the matrix units.
#pragma once

#include <type_traits>

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/kernels/gemm_loaders.cuh"
#include "backends/cuda/kernels/gemm_splits.cuh"
#include "backends/cuda/kernels/gemm_variants.h"

namespace sparkle::cuda {

// The right operand with column `t * 8 + j` in row `t + j * kAcross` of shared memory: threads side by side then read rows side by
// side, and no bank twice.
template <Operand kType, int kRows, int kBytes, int kThreads>
struct LoadColumns : ChunkRows<kRows, kBytes, kThreads> {
  using Rows = ChunkRows<kRows, kBytes, kThreads>;
  static constexpr int kAcross = kRows / 8, kElement = operand_bytes(kType);
  const uint8_t* from;
  int32_t k, first_column;

  SPARKLE_DEVICE void begin(const GemmRecord& record, int32_t column, int32_t first_k, int32_t instance) {
    k = first_k + static_cast<int32_t>(Rows::chunk()) * (16 / kElement);
    first_column = column;
    from = static_cast<const uint8_t*>(record.w) + (int64_t{instance} + k) * kElement;
  }
  SPARKLE_DEVICE void load(const GemmRecord& record, SharedAddress tile) {
    SPARKLE_UNROLL
    for (int i = 0; i < Rows::kOwn; ++i) {
      const int32_t row = static_cast<int32_t>(Rows::first()) + i * Rows::kApart;
      const int32_t column = first_column + row % kAcross * 8 + row / kAcross;
      const bool valid = column < record.n && k < record.k;
      const uint8_t* at = valid ? from + int64_t{column} * record.w_stride * kElement : static_cast<const uint8_t*>(record.w);
      copy_async_16(tile + chunk_place<kBytes>(static_cast<uint32_t>(row), Rows::chunk()), at, valid ? 16 : 0);
    }
    k += kBytes / kElement;
    from += kBytes;
  }
};

// One of the elements of 16 bits side by side in a chunk.
template <Operand kType>
SPARKLE_DEVICE float widened(const Words4& chunk, int element) {
  const auto bits = static_cast<uint16_t>(chunk.v[element / 2] >> (element % 2 * 16));
  return kType == Operand::f16 ? float_of_half(bits) : float_of_bfloat(bits);
}

template <Operand kType, GemmLoader kLoader, int kM, int kN, int kStages>
struct GemmFma {
  // Sizes.
  static constexpr int kBytes = 64, kK = kBytes / operand_bytes(kType), kAcross = kN / 8, kThreads = kM * kN / (kM >= 128 && kN >= 128 ? 64 : 32);
  static constexpr int kDown = kThreads / kAcross, kRows = kM / kDown;  // threads along m, rows of a thread
  static constexpr int kStageBytes = (kM + kN) * kBytes;
  static constexpr bool kElements = kLoader == GemmLoader::elements;
  static_assert(!kElements || kStages == 2);
  using LoadLeft = std::conditional_t<kElements, LoadElements<kType, kM, kBytes, kThreads>,
                                      LoadChunks<kType, kM, kBytes, kThreads>>;

  SPARKLE_DEVICE static void multiply_stage(SharedAddress left, SharedAddress right, float (&sums)[kRows][8]) {
    SPARKLE_UNROLL
    for (uint32_t chunk = 0; chunk < kBytes / 16; ++chunk) {
      if constexpr (kType == Operand::f32) multiply_chunk(left, right, chunk, sums);
      else multiply_widened(left, right, chunk, sums);
    }
  }
  // Four steps of k.
  SPARKLE_DEVICE static void multiply_chunk(SharedAddress left, SharedAddress right, uint32_t chunk, float (&sums)[kRows][8]) {
    const uint32_t across = thread_id() % kAcross, down = thread_id() / kAcross;
    float a[kRows][4];
    SPARKLE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Words4 w = load_shared_16(left + chunk_place<kBytes>(down + static_cast<uint32_t>(i * kDown), chunk));
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) a[i][e] = float_of(w.v[e]);
    }
    SPARKLE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const Words4 w = load_shared_16(right + chunk_place<kBytes>(across + static_cast<uint32_t>(j * kAcross), chunk));
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        SPARKLE_UNROLL
        for (int i = 0; i < kRows; ++i) sums[i][j] += a[i][e] * float_of(w.v[e]);
      }
    }
  }
  // Eight steps of k: both operands' elements become f32 as they are multiplied, which loses nothing.
  SPARKLE_DEVICE static void multiply_widened(SharedAddress left, SharedAddress right, uint32_t chunk,
                                              float (&sums)[kRows][8]) {
    const uint32_t across = thread_id() % kAcross, down = thread_id() / kAcross;
    Words4 rows[kRows], columns[8];
    SPARKLE_UNROLL
    for (int i = 0; i < kRows; ++i) {
      rows[i] = load_shared_16(left + chunk_place<kBytes>(down + static_cast<uint32_t>(i * kDown), chunk));
    }
    SPARKLE_UNROLL
    for (int j = 0; j < 8; ++j) {
      columns[j] = load_shared_16(right + chunk_place<kBytes>(across + static_cast<uint32_t>(j * kAcross), chunk));
    }
    SPARKLE_UNROLL
    for (int e = 0; e < 8; ++e) {
      float a[kRows];
      SPARKLE_UNROLL
      for (int i = 0; i < kRows; ++i) a[i] = widened<kType>(rows[i], e);
      SPARKLE_UNROLL
      for (int j = 0; j < 8; ++j) {
        const float b = widened<kType>(columns[j], e);
        SPARKLE_UNROLL
        for (int i = 0; i < kRows; ++i) sums[i][j] += a[i] * b;
      }
    }
  }

  SPARKLE_DEVICE static void run(const GemmRecord& record) {
    const SharedAddress shared = shared_base();
    const TilePlace tile = tile_place(record, static_cast<int32_t>(block_x()), record.tiles_m);
    const Instance instance = instance_of(record, block_z());
    const int32_t all_steps = (record.k + kK - 1) / kK;
    const int32_t each = record.splits > 1 ? record.split_steps : all_steps,
                  first_step = static_cast<int32_t>(block_y()) * each;
    const int32_t left_over = all_steps - first_step, steps = left_over < each ? left_over : each;

    LoadLeft x;
    LoadColumns<kType, kN, kBytes, kThreads> w;
    x.begin(record, tile.m * kM, first_step * kK, dot4(instance.v, record.x_instance));
    w.begin(record, tile.n * kN, first_step * kK, dot4(instance.v, record.w_instance));
    float sums[kRows][8] = {};

    if constexpr (kElements) {
      SharedAddress now = shared, next = shared + kStageBytes;
      if (steps > 0) {
        x.fetch(record);
        x.put(now);
        w.load(record, now + kM * kBytes);
        commit_copies();
      }
      SPARKLE_ROLLED
      for (int32_t step = 0; step < steps; ++step) {
        wait_copies<0>();
        sync_block();
        const bool more = step + 1 < steps;
        if (more) {
          w.load(record, next + kM * kBytes);
          commit_copies();
          x.fetch(record);
        }
        multiply_stage(now, now + kM * kBytes, sums);
        if (more) x.put(next);
        const SharedAddress before = now;
        now = next, next = before;
      }
    } else if constexpr (kStages == 1) {
      SPARKLE_ROLLED
      for (int32_t step = 0; step < steps; ++step) {
        x.load(record, shared);
        w.load(record, shared + kM * kBytes);
        commit_copies();
        wait_copies<0>();
        sync_block();
        multiply_stage(shared, shared + kM * kBytes, sums);
        sync_block();
      }
    } else {
      SPARKLE_UNROLL
      for (int stage = 0; stage < kStages - 1; ++stage) {
        if (stage < steps) {
          x.load(record, shared + stage * kStageBytes);
          w.load(record, shared + stage * kStageBytes + kM * kBytes);
        }
        commit_copies();
      }
      SharedAddress now = shared, next = shared + (kStages - 1) * kStageBytes;
      const SharedAddress end = shared + kStages * kStageBytes;
      SPARKLE_ROLLED
      for (int32_t step = 0; step < steps; ++step) {
        wait_copies<kStages - 2>();
        sync_block();
        if (step + kStages - 1 < steps) {
          x.load(record, next);
          w.load(record, next + kM * kBytes);
        }
        commit_copies();
        multiply_stage(now, now + kM * kBytes, sums);
        now += kStageBytes, next += kStageBytes;
        if (now == end) now = shared;
        if (next == end) next = shared;
      }
    }
    wait_copies<0>();
    if (record.splits > 1) {
      const int64_t number = int64_t{block_z()} * grid_x() + block_x();
      constexpr int kPieces = 2 * kRows;
      if (!add_splits<float, kPieces, kThreads>(record, number, static_cast<int32_t>(block_y()), thread_id(), shared,
                                                reinterpret_cast<float(&)[kPieces][4]>(sums), [] { sync_block(); })) {
        return;
      }
    }

    Finish<Operand::f32> finish;
    finish.begin(record, tile.n * kN + static_cast<int32_t>(thread_id() % kAcross * 8), block_z());
    const int32_t first = tile.m * kM + static_cast<int32_t>(thread_id() / kAcross);
    SPARKLE_ROLLED
    for (int row = 0; row < kRows; ++row) {
      uint32_t words[8] = {};
      SPARKLE_UNROLL
      for (int i = 0; i < kRows; ++i) {  // registers have no number at run time
        SPARKLE_UNROLL
        for (int j = 0; j < 8; ++j) words[j] = i == row ? bits_of(sums[i][j]) : words[j];
      }
      finish.row(record, first + row * kDown, words);
    }
  }
};

}  // namespace sparkle::cuda
