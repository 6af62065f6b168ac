// Tiles of both operands on their way through shared memory while those before them are multiplied.
#pragma once

#include <type_traits>

#include "backends/cuda/kernels/gemm_loaders.cuh"
#include "backends/cuda/kernels/gemm_variants.h"

namespace sparkle::cuda {

// A block's tile of m x n by kBytes of k: calls multiply(address of a stage) for each step of k, the left operand's rows first.
template <Operand kType, GemmLoader kLoader, int kM, int kN, int kBytes, int kThreads, int kStages>
struct GemmPipeline {
  static constexpr int kK = kBytes / operand_bytes(kType), kLeftBytes = kM * kBytes, kStageBytes = kLeftBytes + kN * kBytes;
  static constexpr bool kElements = kLoader == GemmLoader::elements;
  static_assert(!kElements || kStages == 2);
  using LoadLeft =
      std::conditional_t<kElements, LoadElements<kType, kM, kBytes, kThreads>, LoadChunks<kType, kM, kBytes, kThreads>>;
  using LoadRight = LoadFilters<kType, kN, kBytes, kThreads>;

  template <class Multiply>
  SPARKLE_DEVICE static void run(const GemmRecord& record, SharedAddress shared, const TilePlace& tile, Multiply multiply) {
    const Instance instance = instance_of(record, block_z());
    const int32_t all_steps = (record.k + kK - 1) / kK;
    const int32_t each = record.splits > 1 ? record.split_steps : all_steps,
                  first_step = static_cast<int32_t>(block_y()) * each;
    const int32_t left_over = all_steps - first_step, steps = left_over < each ? left_over : each;
    LoadLeft x;
    LoadRight w;
    x.begin(record, tile.m * kM, first_step * kK, dot4(instance.v, record.x_instance));
    w.begin(record, tile.n * kN, first_step * kK, dot4(instance.v, record.w_instance));

    if constexpr (kElements) {
      SharedAddress now = shared, next = shared + kStageBytes;
      if (steps > 0) {
        x.fetch(record);
        x.put(now);
        w.load(record, now + kLeftBytes);
        commit_copies();
      }
      SPARKLE_ROLLED
      for (int32_t step = 0; step < steps; ++step) {
        wait_copies<0>();
        sync_block();
        const bool more = step + 1 < steps;
        if (more) {
          w.load(record, next + kLeftBytes);
          commit_copies();
          x.fetch(record);
        }
        multiply(now);
        if (more) x.put(next);
        const SharedAddress before = now;
        now = next, next = before;
      }
    } else if constexpr (kStages == 1) {
      SPARKLE_ROLLED
      for (int32_t step = 0; step < steps; ++step) {
        x.load(record, shared);
        w.load(record, shared + kLeftBytes);
        commit_copies();
        wait_copies<0>();
        sync_block();
        multiply(shared);
        sync_block();
      }
    } else {
      // kStages - 1 stages are under way; a stage is filled anew once all have multiplied what it held.
      SPARKLE_UNROLL
      for (int stage = 0; stage < kStages - 1; ++stage) {
        if (stage < steps) {
          x.load(record, shared + stage * kStageBytes);
          w.load(record, shared + stage * kStageBytes + kLeftBytes);
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
          w.load(record, next + kLeftBytes);
        }
        commit_copies();
        multiply(now);
        now += kStageBytes, next += kStageBytes;
        if (now == end) now = shared;
        if (next == end) next = shared;
      }
    }
    wait_copies<0>();
    sync_block();  // what the stages held is done with
  }
};

}  // namespace sparkle::cuda
