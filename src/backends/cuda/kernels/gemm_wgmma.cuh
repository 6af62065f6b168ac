// The product on Hopper's Tensor Cores (sm_90a): persistent blocks of one warpgroup that has both operands copied by the engine
// - the left one through the window - and two that multiply, by several stages of 128 bytes of k; blocks of a cluster share the
// right operand.
#pragma once

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/kernels/gemm_splits.cuh"
#include "backends/cuda/kernels/gemm_variants.h"
#include "backends/cuda/kernels/gemm_tma_record.h"
#include "backends/cuda/kernels/integers/zero_points.cuh"
#include "backends/cuda/kernels/products/gemm_boxes.cuh"
#include "backends/cuda/kernels/products/gemm_filters.cuh"
#include "backends/cuda/kernels/products/gemm_float8.cuh"
#include "backends/cuda/ptx/barrier.cuh"
#include "backends/cuda/ptx/wgmma.cuh"

namespace sparkle::cuda {

template <Operand kType, int kM, int kN, int kStages, int kCluster>
struct GemmWgmma {
  // Sizes. kM pixels by kN filters; of a product 64 rows by kColumns.
  static constexpr bool kSwapped = kM == kSwappedM;
  static constexpr int kConsumers = 2, kThreads = 128 * (kConsumers + 1), kBytes = 128, kElement = operand_bytes(kType);
  static constexpr int kColumns = kSwapped ? 256 : kN;
  static constexpr bool kWords = kSwapped && kElement == 2;  // outputs in 16 bits without a residual go by FiltersOut
  static constexpr bool kBoxes = !kSwapped;  // where record.boxes is obeyed
  static constexpr Operand kOperand = kType;
  static constexpr int kBlocks = kCluster;
  static_assert(!is_float8(kType) || (!kSwapped && kN <= 192));                     // sums of a step beside those of all
  static_assert(kSwapped ? kM == kConsumers * kColumns && kN == 64 : kM == kConsumers * 64);
  static constexpr int kK = kBytes / kElement, kProducts = kBytes / 32;  // products deep
  static constexpr int kLeftBytes = kM * kBytes, kRightBytes = kN * kBytes, kStageBytes = kLeftBytes + kRightBytes;
  static constexpr int kStripBytes = gemm_wgmma_strip_bytes(kM);
  static_assert(!kSwapped || FiltersOut<kColumns>::kStripBytes <= kStripBytes);
  static constexpr int kStripsAt = kStages * kStageBytes, kTermsAt = kStripsAt + 4 * kConsumers * kStripBytes;
  static constexpr int kTermsBytes = gemm_wgmma_terms_bytes(kM, kN), kBarriersAt = kTermsAt + kConsumers * kTermsBytes;
  static constexpr int kWordAt = kBarriersAt + 16 * kStages;
  // What the bytes of a warpgroup's pixels add up to: not where the engine may still read the outputs before.
  static constexpr int kZeroPointsAt = kBoxes ? kTermsAt : kStripsAt,
                       kZeroPointsBytes = kBoxes ? kTermsBytes : 4 * kStripBytes;
  static_assert(!is_integer(kType) || kM / kConsumers * 4 <= kZeroPointsBytes);
  static_assert(kWordAt + 16 == gemm_wgmma_shared_bytes(kM, kN, kStages));
  // Registers: the sums are kColumns / 2 of a consumer's; the copying warpgroup needs few. Together no more than a core's
  // 65536.
  static constexpr int kFewRegisters = 40, kManyRegisters = 232;
  using Sum = typename SumOf<kType>::Type;
  static constexpr Operand kFilters = filter_operand(kType), kA = kSwapped ? kFilters : kType, kB = kSwapped ? kType : kFilters;
  using ZeroPoints = PixelSums<kType, kM / kConsumers, kColumns, kSwapped>;

  // A part of the work: a tile of an instance, and which steps of k.
  struct Work {
    TilePlace tile;
    int32_t instance, split, first_step, steps, number;
  };
  SPARKLE_DEVICE static int32_t works(const GemmTmaRecord& record) {
    const GemmRecord& g = record.gemm;
    return g.tiles_m / kCluster * g.tiles_n * g.splits * static_cast<int32_t>(g.instances_by[2].size);
  }
  SPARKLE_DEVICE static int32_t first_work() { return static_cast<int32_t>(block_x_again()) / kCluster; }
  SPARKLE_DEVICE static int32_t works_at_once() { return static_cast<int32_t>(grid_x()) / kCluster; }
  SPARKLE_DEVICE static Work work_of(const GemmTmaRecord& record, int32_t number, uint32_t rank) {
    const GemmRecord& g = record.gemm;
    const int32_t tiles = g.tiles_m / kCluster * g.tiles_n, tile = number % tiles, rest = number / tiles;
    Work work;
    work.tile = tile_place(g, tile, g.tiles_m / kCluster);
    work.tile.m = work.tile.m * kCluster + static_cast<int32_t>(rank);
    work.split = rest % g.splits, work.instance = rest / g.splits;
    const int32_t all = g.filter[1] * g.filter[2] * record.channel_steps, each = g.splits > 1 ? g.split_steps : all;
    work.first_step = work.split * each;
    work.steps = all - work.first_step < each ? all - work.first_step : each;
    work.number = (work.instance * tiles + tile) * kCluster + static_cast<int32_t>(rank);
    return work;
  }

  // Which stage comes next, and in which phase its barriers are.
  struct Turn {
    int stage = 0;
    uint32_t parity = 0;
    SPARKLE_DEVICE void next() {
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  };
  SPARKLE_DEVICE static SharedAddress full(SharedAddress shared, int stage) { return shared + kBarriersAt + 8 * stage; }
  SPARKLE_DEVICE static SharedAddress empty(SharedAddress shared, int stage) { return full(shared, stage) + 8 * kStages; }

  // One thread: a stage's copies as soon as all that read it, in all blocks it goes to, have let go of it.
  SPARKLE_DEVICE static void copy(const GemmTmaRecord& record, SharedAddress shared, uint32_t rank) {
    const GemmRecord& g = record.gemm;
    constexpr int kShare = kN / kCluster;  // filters that this block copies for all
    Turn turn;
    for (int32_t number = first_work(); number < works(record); number += works_at_once()) {
      const Work work = work_of(record, number, rank);
      const Pixel pixel = pixel_of(g, work.tile.m * kM);
      const int32_t w = pixel.v[3] * g.stride[2] - g.pad[2], h = pixel.v[2] * g.stride[1] - g.pad[1];
      const int32_t filters = work.instance * record.w_instance + work.tile.n * kN + static_cast<int32_t>(rank) * kShare;
      int32_t step = work.first_step % record.channel_steps, tap = work.first_step / record.channel_steps;
      int32_t r = tap / g.filter[2], s = tap % g.filter[2];
      for (int32_t left = work.steps; left > 0; --left, turn.next()) {
        const SharedAddress stage = shared + turn.stage * kStageBytes, barrier = full(shared, turn.stage);
        barrier_wait(empty(shared, turn.stage), turn.parity ^ 1);
        barrier_arrive_expecting(barrier, kStageBytes);
        load_pixels(stage, record.x, barrier, work.instance * record.x_instance + step * kK, w, h, pixel.v[0],
                    static_cast<uint16_t>(s * g.dilation[2]), static_cast<uint16_t>(r * g.dilation[1]));
        load_box(stage + kLeftBytes + static_cast<int>(rank) * (kShare * kBytes), record.w, barrier, step * kK, tap, filters,
                 kCluster > 1 ? (1 << kCluster) - 1 : 0);
        if (++step < record.channel_steps) continue;
        step = 0, ++tap;
        if (++s == g.filter[2]) s = 0, ++r;
      }
      if constexpr (kBoxes) Boxes<GemmWgmma>::copy_residual(record, shared, work_of(record, anew(number), rank), turn);
    }
  }

  // A warp has read a stage: all blocks whose copies go there hear of it.
  SPARKLE_DEVICE static void let_go(SharedAddress shared, int stage, uint32_t lane) {
    if constexpr (kCluster == 1) {
      if (lane == 0) barrier_arrive(empty(shared, stage));
    } else {
      if (lane < kCluster) barrier_arrive_at(empty(shared, stage), lane);
    }
  }

  // `thread` of a consumer's 128.
  SPARKLE_DEVICE static void multiply_steps(SharedAddress shared, uint32_t consumer, uint32_t thread, int32_t steps, Turn& turn,
                                            ZeroPoints& zeros, Sum (&sums)[kColumns / 2]) {
    const uint32_t lane = thread % 32;
    if constexpr (is_float8(kType)) return multiply_float8<GemmWgmma>(shared, consumer, lane, steps, turn, sums);
    int before = 0;
    hold(sums);
    SPARKLE_ROLLED
    for (int32_t step = 0; step < steps; ++step) {
      const SharedAddress stage = shared + turn.stage * kStageBytes;
      const SharedAddress lines = stage + consumer * (kM / kConsumers * kBytes);
      const uint64_t pixels = descriptor_of(lines), filters = descriptor_of(stage + kLeftBytes);
      const uint64_t left = kSwapped ? filters : pixels, right = kSwapped ? pixels : filters;
      barrier_wait(full(shared, turn.stage), turn.parity);
      wgmma_fence();
      SPARKLE_UNROLL
      for (int k = 0; k < kProducts; ++k) {  // 32 bytes of k are 2 of the descriptors' units
        multiply_group<kA, kB, kColumns>(sums, left + 2 * k, right + 2 * k, k > 0 || step > 0);
      }
      wgmma_commit();
      if constexpr (is_integer(kType)) {
        if (zeros.wanted) zeros.add(lines, thread);
      }
      wgmma_wait<1>();  // the step before has been multiplied
      if (step > 0) let_go(shared, before, lane);
      before = turn.stage;
      turn.next();
    }
    wgmma_wait<0>();
    hold(sums);
    let_go(shared, before, lane);
  }

  // Out, through shared memory that is this warp's: 16 pixels and a few filters at a time.
  SPARKLE_DEVICE static void finish_tile(const GemmRecord& g, SharedAddress strips, uint32_t warp, uint32_t lane,
                                         const Work& work, const Sum (&sums)[kColumns / 2]) {
    constexpr int kStride = kWgmmaStripColumns * 4 + 32, kLanes = kWgmmaStripColumns / 8, kRowsAtOnce = 32 / kLanes;
    constexpr int kTiles = kWgmmaStripColumns / 8, kParts = kColumns / kWgmmaStripColumns;
    const SharedAddress strip = strips + warp * kStripBytes;
    const SharedAddress put = strip + lane / 4 * kStride + lane % 4 * 8,
                        take = strip + lane / kLanes * kStride + lane % kLanes * 32;
    const int32_t first_row = work.tile.m * kM + static_cast<int32_t>(warp * 16 + lane / kLanes);
    SPARKLE_ROLLED
    for (int part = 0; part < kParts; ++part) {
      SPARKLE_UNROLL
      for (int i = 0; i < kParts; ++i) {  // registers have no number at run time
        if (i != part) continue;
        SPARKLE_UNROLL
        for (int j = 0; j < kTiles; ++j) {
          const int at = 4 * (i * kTiles + j);
          store_shared_8(put + j * 32, __builtin_bit_cast(uint32_t, sums[at]), __builtin_bit_cast(uint32_t, sums[at + 1]));
          store_shared_8(put + j * 32 + 8 * kStride, __builtin_bit_cast(uint32_t, sums[at + 2]),
                         __builtin_bit_cast(uint32_t, sums[at + 3]));
        }
      }
      sync_warp();
      Finish<kType, true> finish;
      finish.begin(g, work.tile.n * kN + part * kWgmmaStripColumns + static_cast<int32_t>(lane % kLanes * 8),
                   static_cast<uint32_t>(work.instance));
      SPARKLE_ROLLED
      for (int r = 0; r < 16; r += kRowsAtOnce) finish.row(g, first_row + r, taken(take + r * kStride).v);
      sync_warp();
    }
  }
  // The same where filters are rows: a warp has 16 of them, and pixels lie across.
  SPARKLE_DEVICE static void finish_swapped(const GemmRecord& g, SharedAddress strips, uint32_t warp, uint32_t lane,
                                            const Work& work, const Sum (&sums)[kColumns / 2]) {
    constexpr int kStride = 16 * 4 + 16, kTiles = kSwappedStripPixels / 8, kParts = kColumns / kSwappedStripPixels;
    const SharedAddress strip = strips + warp * kStripBytes;
    const SharedAddress put = strip + lane % 4 * (2 * kStride) + lane / 4 * 4,
                        take = strip + lane / 2 * kStride + lane % 2 * 32;
    const int32_t first_row = work.tile.m * kM + static_cast<int32_t>(warp / 4 * kColumns + lane / 2);
    Finish<kType, true> finish;
    finish.begin(g, work.tile.n * kN + static_cast<int32_t>(warp % 4 * 16 + lane % 2 * 8),
                 static_cast<uint32_t>(work.instance));
    SPARKLE_ROLLED
    for (int part = 0; part < kParts; ++part) {
      SPARKLE_UNROLL
      for (int i = 0; i < kParts; ++i) {
        if (i != part) continue;
        SPARKLE_UNROLL
        for (int j = 0; j < 4 * kTiles; ++j) {  // of four: a pixel and the next, then of the filter 8 further
          store_shared_4(put + j / 4 * (8 * kStride) + j % 2 * kStride + j / 2 % 2 * 32,
                         __builtin_bit_cast(uint32_t, sums[i * (4 * kTiles) + j]));
        }
      }
      sync_warp();
      finish.row(g, first_row + part * kSwappedStripPixels, taken(take).v);
      sync_warp();
    }
  }
  SPARKLE_DEVICE static void finish_words(const GemmRecord& g, SharedAddress strips, uint32_t warp, uint32_t lane,
                                          const Work& work, const FilterTerms& terms, const float (&sums)[kColumns / 2]) {
    const int32_t first_row = work.tile.m * kM + static_cast<int32_t>(warp / 4 * kColumns);
    const int64_t instance = work.instance * g.y_instance[3];
    FiltersOut<kColumns>::finish(g, terms, strips + warp * kStripBytes, lane,
                                 work.tile.n * kN + static_cast<int32_t>(warp % 4 * 16), sums, [&](uint32_t pixel) -> int64_t {
                                   const int32_t row = first_row + static_cast<int32_t>(pixel);
                                   return row < g.m ? instance + dot4(pixel_of(g, row).v, g.y_strides) : -1;
                                 });
  }
  struct Words8 {
    uint32_t v[8];
  };
  SPARKLE_DEVICE static Words8 taken(SharedAddress from) {
    const Words4 low = load_shared_16(from), high = load_shared_16(from + 16);
    return {{low.v[0], low.v[1], low.v[2], low.v[3], high.v[0], high.v[1], high.v[2], high.v[3]}};
  }

  SPARKLE_DEVICE static void run(const GemmTmaRecord& record) {
    const SharedAddress shared = shared_base();
    const uint32_t rank = kCluster > 1 ? cluster_rank() : 0, group = uniform(thread_id() / 128);
    if (thread_id() == 0) {
      prefetch_map(record.x);
      prefetch_map(record.w);
      for (int stage = 0; stage < kStages; ++stage) {
        barrier_init(full(shared, stage), 1);
        barrier_init(empty(shared, stage), 4 * kConsumers * kCluster);
      }
      fence_barrier_init();
    }
    if constexpr (kCluster > 1) {
      sync_cluster();
    } else {
      sync_block();
    }
    wait_for_prerequisites();
    launch_dependents();

    if (group == 0) {
      give_registers<kFewRegisters>();
      if (thread_id() == 0) copy(record, shared, rank);
      sync_warp();
    } else {
      take_registers<kManyRegisters>();
      const uint32_t thread = thread_id_again() - 128, consumer = group - 1;
      Turn turn;
      // Zero points of pixels outside of the image are given back pixel by pixel.
      bool gives_back_outside = false;
      if constexpr (is_integer(kType))
        gives_back_outside = record.gemm.w_taps != nullptr && x_zero_of<kType>(record.gemm) != 0;
      SPARKLE_ROLLED
      for (int32_t number = first_work(); number < works(record); number += works_at_once()) {
        Work work = work_of(record, number, rank);
        Sum sums[kColumns / 2];
        SPARKLE_UNROLL
        for (int i = 0; i < kColumns / 2; ++i) sums[i] = 0;
        ZeroPoints zeros;
        const int32_t channel = is_integer(kType) ? work.instance * record.gemm.channel_instance[3] : 0;
        if constexpr (is_integer(kType)) zeros.wanted = has_zero_points<kN>(record.gemm, channel, work.tile.n * kN);
        ColumnTerms<kType, kBoxes ? kN : 1> terms;
        const bool boxes = kBoxes && record.boxes != 0 && !gives_back_outside;
        FilterTerms filter_terms;
        const bool words = kWords && filters_in_words(record.gemm);
        if (words)
          filter_terms.load(record.gemm, work.instance, work.tile.n * kN + static_cast<int32_t>(thread % 128 / 32 * 16),
                            thread % 32);
        constexpr bool kEarly = !is_float8(kType);  // whose sums leave no registers to keep them
        if (boxes && kEarly) terms.load(record.gemm, work.instance, work.tile.n * kN, thread % 128);
        multiply_steps(shared, consumer, thread % 128, work.steps, turn, zeros, sums);
        // What is derived from numbers of the work and the thread has no registers while sums are added up.
        if constexpr (is_integer(kType)) {
          if (zeros.wanted) {
            const Work now = work_of(record, anew(number), kCluster > 1 ? cluster_rank() : 0);
            zeros.take(record.gemm, channel, now.tile.n * kN, shared + kZeroPointsAt + consumer * kZeroPointsBytes,
                       thread_id_again() % 128, 2 + consumer, sums);
          }
        }
        if (record.gemm.splits > 1) {
          const Work now = work_of(record, anew(number), kCluster > 1 ? cluster_rank() : 0);
          if (!add_splits<Sum, kColumns / 8, 128 * kConsumers>(record.gemm, now.number, now.split, thread_id_again() - 128,
                                                               shared + kWordAt,
                                                               reinterpret_cast<Sum(&)[kColumns / 8][4]>(sums),
                                                               [] { sync_threads(1, 128 * kConsumers); }))
            continue;
        }
        work = work_of(record, anew(number), kCluster > 1 ? cluster_rank() : 0);
        const uint32_t again = thread_id_again() - 128, warp = uniform(again / 32), lane = again % 32;
        if constexpr (kBoxes) {
          if (boxes) {
            if (!kEarly) terms.load(record.gemm, work.instance, work.tile.n * kN, again % 128);
            terms.put(shared + kTermsAt + warp / 4 * kTermsBytes, record.gemm.alpha, again % 128, 2 + warp / 4);
            Boxes<GemmWgmma>::finish(record, shared, warp, lane, work, turn, sums);
            continue;
          }
        }
        if constexpr (kWords) {
          if (words) {
            finish_words(record.gemm, shared + kStripsAt, warp, lane, work, filter_terms, sums);
            continue;
          }
        }
        if constexpr (kSwapped) {
          finish_swapped(record.gemm, shared + kStripsAt, warp, lane, work, sums);
        } else {
          finish_tile(record.gemm, shared + kStripsAt, warp, lane, work, sums);
        }
      }
    }
    if constexpr (kBoxes) {
      if (group != 0) Boxes<GemmWgmma>::end(thread_id() % 32);
    }
    if constexpr (kCluster > 1) sync_cluster();  // no block ends while another's copies or arrivals are on their way to it
  }
};

}  // namespace sparkle::cuda
