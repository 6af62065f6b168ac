// Windows of stride 1 and few filters on Hopper's Tensor Cores: pixels with their surroundings come to shared memory once for
// all taps, since a descriptor may begin at any row of 128 bytes (the swizzle goes by addresses). Filters of one tap after
// another stream through a ring. What copies read of the L2 is a part of what an im2col of each tap does: for 3x3 on planes of
// 56x56 a seventh.
#pragma once

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/kernels/gemm_halo_record.h"
#include "backends/cuda/kernels/integers/zero_points.cuh"
#include "backends/cuda/kernels/products/gemm_filters.cuh"
#include "backends/cuda/ptx/barrier.cuh"
#include "backends/cuda/ptx/wgmma.cuh"

namespace sparkle::cuda {

template <Operand kType>
struct GemmHalo {
  // Sizes.
  static constexpr int kColumns = kHaloM / 2, kBytes = 128, kElement = operand_bytes(kType), kK = kBytes / kElement,
                       kProducts = kBytes / 32;
  static constexpr int kSlotBytes = kHaloSlotPixels * kBytes, kTapBytes = kHaloN * kBytes;
  static constexpr int kTapsAt = kHaloSlots * kSlotBytes, kStripsAt = kTapsAt + kHaloTaps * kTapBytes;
  static constexpr int kStride = 16 * 4 + 16, kStripBytes = 16 * kStride;  // 16 pixels by 16 filters of a warp's sums
  static constexpr int kBarriersAt = kStripsAt + 8 * kStripBytes;
  static_assert(kBarriersAt + 16 * (kHaloSlots + kHaloTaps) == halo_shared_bytes() && kSlotBytes % 1024 == 0);
  using Sum = typename SumOf<kType>::Type;
  using ZeroPoints = PixelSums<kType, kColumns, kColumns, true>;
  static constexpr bool kWords = kElement == 2;  // outputs in 16 bits without a residual go by FiltersOut
  static_assert(FiltersOut<kColumns>::kStripBytes <= kStripBytes);

  // A ring of kCount slots, each with two barriers: filled, and let go by eight warps.
  template <int kCount>
  struct Ring {
    SharedAddress barriers;
    int slot = 0;
    uint32_t parity = 0;
    SPARKLE_DEVICE explicit Ring(SharedAddress at) : barriers(at) {}
    SPARKLE_DEVICE SharedAddress full() const { return barriers + 16 * slot; }
    SPARKLE_DEVICE static SharedAddress empty(SharedAddress full) { return full + 8; }
    SPARKLE_DEVICE void begin() const {
      for (int i = 0; i < kCount; ++i) {
        barrier_init(barriers + 16 * i, 1);
        barrier_init(barriers + 16 * i + 8, 8);
      }
    }
    SPARKLE_DEVICE void next() {
      if (++slot == kCount) slot = 0, parity ^= 1;
    }
  };
  using Pixels = Ring<kHaloSlots>;
  using Taps = Ring<kHaloTaps>;
  SPARKLE_DEVICE static void let_go(SharedAddress full, uint32_t lane) {
    if (lane == 0) barrier_arrive(full + 8);
  }

  struct Work {
    int32_t image, first_row, n, instance;
  };
  SPARKLE_DEVICE static int32_t works(const GemmHaloRecord& r) {
    return r.gemm.tiles_m * r.gemm.tiles_n * static_cast<int32_t>(r.gemm.instances_by[2].size);
  }
  SPARKLE_DEVICE static Work work_of(const GemmHaloRecord& r, int32_t number) {
    const int32_t tiles = r.gemm.tiles_m * r.gemm.tiles_n;
    const TilePlace tile = tile_place(r.gemm, number % tiles, r.gemm.tiles_m);
    uint32_t image = static_cast<uint32_t>(tile.m);
    const int32_t part = static_cast<int32_t>(fast_divmod(image, r.tiles_of_image));
    return {static_cast<int32_t>(image), part * r.rows, tile.n, number / tiles};
  }

  // One thread: pixels of a tile's channels, then its taps.
  SPARKLE_DEVICE static void copy(const GemmHaloRecord& r, SharedAddress shared, Pixels pixels, Taps taps) {
    const GemmRecord& g = r.gemm;
    const uint32_t bytes = r.width_by.size * static_cast<uint32_t>(r.box_rows) * kBytes;
    const int32_t all_taps = g.filter[1] * g.filter[2];
    for (int32_t number = static_cast<int32_t>(block_x_again()); number < works(r); number += static_cast<int32_t>(grid_x())) {
      const Work work = work_of(r, number);
      for (int32_t step = 0; step < r.channel_steps; ++step, pixels.next()) {
        barrier_wait(Pixels::empty(pixels.full()), pixels.parity ^ 1);
        barrier_arrive_expecting(pixels.full(), bytes);
        load_image(shared + pixels.slot * kSlotBytes, r.x, pixels.full(), work.instance * r.x_instance + step * kK, -g.pad[2],
                   work.first_row - g.pad[1], work.image);
        for (int32_t tap = 0; tap < all_taps; ++tap, taps.next()) {
          barrier_wait(Taps::empty(taps.full()), taps.parity ^ 1);
          barrier_arrive_expecting(taps.full(), kTapBytes);
          load_box(shared + kTapsAt + taps.slot * kTapBytes, r.w, taps.full(), step * kK, tap,
                   work.instance * r.w_instance + work.n * kHaloN, 0);
        }
      }
    }
  }

  // `thread` of a consumer's 128.
  SPARKLE_DEVICE static void multiply_tile(const GemmHaloRecord& r, SharedAddress shared, uint32_t consumer, uint32_t thread,
                                           Pixels& pixels, Taps& taps, ZeroPoints& zeros, Sum (&sums)[kColumns / 2]) {
    const uint32_t lane = thread % 32;
    const GemmRecord& g = r.gemm;
    const int32_t width = static_cast<int32_t>(r.width_by.size), all = r.channel_steps * g.filter[1] * g.filter[2];
    SharedAddress before = 0,
                  pixels_before = 0;  // slots of the step before: a tap's filters, and pixels where it was their last tap
    int32_t tap_r = 0, tap_s = 0;
    hold(sums);
    SPARKLE_ROLLED
    for (int32_t step = 0; step < all; ++step) {
      const int32_t apart = tap_r * g.dilation[1] * width + tap_s * g.dilation[2];
      const SharedAddress lines =
          shared + pixels.slot * kSlotBytes + consumer * (kColumns * kBytes) + static_cast<uint32_t>(apart) * kBytes;
      const uint64_t filters = descriptor_of(shared + kTapsAt + taps.slot * kTapBytes);
      const uint64_t seen = descriptor_of(lines);
      barrier_wait(pixels.full(), pixels.parity);
      barrier_wait(taps.full(), taps.parity);
      wgmma_fence();
      SPARKLE_UNROLL
      for (int k = 0; k < kProducts; ++k)
        multiply_group<filter_operand(kType), kType, kColumns>(sums, filters + 2 * k, seen + 2 * k, k > 0 || step > 0);
      wgmma_commit();
      if constexpr (is_integer(kType)) {
        if (zeros.wanted) zeros.add(lines, thread);
      }
      wgmma_wait<1>();  // the step before has been multiplied
      if (step > 0) let_go(before, lane);
      if (pixels_before != 0) let_go(pixels_before, lane);
      before = taps.full(), pixels_before = 0;
      taps.next();
      if (++tap_s < g.filter[2]) continue;
      tap_s = 0;
      if (++tap_r < g.filter[1]) continue;
      tap_r = 0, pixels_before = pixels.full();
      pixels.next();
    }
    wgmma_wait<0>();
    hold(sums);
    let_go(before, lane);
    let_go(pixels_before, lane);
  }

  // A warp has 16 filters by all pixels of its warpgroup: out by 16 pixels, through shared memory that is this warp's.
  SPARKLE_DEVICE static void finish_tile(const GemmHaloRecord& r, SharedAddress strips, uint32_t warp, uint32_t lane,
                                         const Work& work, const Sum (&sums)[kColumns / 2]) {
    const GemmRecord& g = r.gemm;
    constexpr int kParts = kColumns / 16;
    const SharedAddress strip = strips + warp * kStripBytes;
    const SharedAddress put = strip + lane % 4 * (2 * kStride) + lane / 4 * 4,
                        take = strip + lane / 2 * kStride + lane % 2 * 32;
    const int32_t height = static_cast<int32_t>(g.rows_by[1].size), width = static_cast<int32_t>(g.rows_by[2].size);
    Finish<kType, true> finish;
    finish.begin(g, work.n * kHaloN + static_cast<int32_t>(warp % 4 * 16 + lane % 2 * 8), static_cast<uint32_t>(work.instance));
    SPARKLE_ROLLED
    for (int part = 0; part < kParts; ++part) {
      SPARKLE_UNROLL
      for (int i = 0; i < kParts; ++i) {  // registers have no number at run time
        if (i != part) continue;
        SPARKLE_UNROLL
        for (int j = 0; j < 8; ++j) {  // of four: a pixel and the next, then of the filter 8 further
          store_shared_4(put + j / 4 * (8 * kStride) + j % 2 * kStride + j / 2 % 2 * 32,
                         __builtin_bit_cast(uint32_t, sums[8 * i + j]));
        }
      }
      sync_warp();
      uint32_t row = warp / 4 * kColumns + static_cast<uint32_t>(part) * 16 + lane / 2;
      const int32_t column = static_cast<int32_t>(fast_divmod(row, r.width_by)), y = work.first_row + static_cast<int32_t>(row);
      const bool is_output = static_cast<int32_t>(row) < r.rows && y < height && column < width;
      const Words4 low = load_shared_16(take), high = load_shared_16(take + 16);
      const uint32_t words[8] = {low.v[0], low.v[1], low.v[2], low.v[3], high.v[0], high.v[1], high.v[2], high.v[3]};
      finish.row(g, is_output ? (work.image * height + y) * width + column : g.m, words);
      sync_warp();
    }
  }

  SPARKLE_DEVICE static void finish_words(const GemmHaloRecord& r, SharedAddress strips, uint32_t warp, uint32_t lane,
                                          const Work& work, const FilterTerms& terms, const float (&sums)[kColumns / 2]) {
    const GemmRecord& g = r.gemm;
    const int32_t height = static_cast<int32_t>(g.rows_by[1].size), width = static_cast<int32_t>(g.rows_by[2].size);
    const int64_t image = int64_t{work.image} * g.y_strides[0] + work.instance * g.y_instance[3];
    FiltersOut<kColumns>::finish(g, terms, strips + warp * kStripBytes, lane,
                                 work.n * kHaloN + static_cast<int32_t>(warp % 4 * 16), sums, [&](uint32_t pixel) -> int64_t {
                                   uint32_t row = warp / 4 * kColumns + pixel;
                                   const int32_t column = static_cast<int32_t>(fast_divmod(row, r.width_by)),
                                                 y = work.first_row + static_cast<int32_t>(row);
                                   if (static_cast<int32_t>(row) >= r.rows || y >= height || column >= width) return -1;
                                   return image + y * g.y_strides[2] + column * g.y_strides[3];
                                 });
  }

  SPARKLE_DEVICE static void run(const GemmHaloRecord& record) {
    const SharedAddress shared = shared_base();
    const uint32_t group = uniform(thread_id() / 128);
    Pixels pixels(shared + kBarriersAt);
    Taps taps(shared + kBarriersAt + 16 * kHaloSlots);
    if (thread_id() == 0) {
      prefetch_map(record.x);
      prefetch_map(record.w);
      pixels.begin();
      taps.begin();
      fence_barrier_init();
    }
    sync_block();
    wait_for_prerequisites();
    launch_dependents();
    if (group == 0) {
      give_registers<40>();
      if (thread_id() == 0) copy(record, shared, pixels, taps);
      return;
    }
    take_registers<232>();
    const uint32_t thread = thread_id_again() - 128, lane = thread % 32, consumer = group - 1, warp = uniform(thread / 32);
    SPARKLE_ROLLED
    for (int32_t number = static_cast<int32_t>(block_x_again()); number < works(record);
         number += static_cast<int32_t>(grid_x())) {
      Sum sums[kColumns / 2];
      SPARKLE_UNROLL
      for (int i = 0; i < kColumns / 2; ++i) sums[i] = 0;
      const Work work = work_of(record, number);
      ZeroPoints zeros;
      const int32_t channel = is_integer(kType) ? work.instance * record.gemm.channel_instance[3] : 0;
      if constexpr (is_integer(kType)) zeros.wanted = has_zero_points<kHaloN>(record.gemm, channel, work.n * kHaloN);
      FilterTerms terms;
      const bool words = kWords && filters_in_words(record.gemm);
      if (words) terms.load(record.gemm, work.instance, work.n * kHaloN + static_cast<int32_t>(warp % 4 * 16), lane);
      multiply_tile(record, shared, consumer, thread % 128, pixels, taps, zeros, sums);
      if constexpr (kWords) {
        if (words) {
          finish_words(record, shared + kStripsAt, warp, lane, work, terms, sums);
          continue;
        }
      }
      if constexpr (is_integer(kType)) {
        if (zeros.wanted)
          zeros.take(record.gemm, channel, work.n * kHaloN, shared + kStripsAt + consumer * (4 * kStripBytes), thread % 128,
                     2 + consumer, sums);
      }
      finish_tile(record, shared + kStripsAt, warp, lane, work, sums);
    }
  }
};

}  // namespace sparkle::cuda
