// Zero points of filters in bytes: what they take off a sum is their share of what the row's bytes add up to. Where the engine
// copies pixels, warpgroups add these up from shared memory, beside their products.
#pragma once

#include "backends/cuda/kernels/gemm_finish.cuh"
#include "backends/cuda/ptx/barrier.cuh"

namespace sparkle::cuda {

// Whether one of kN filters from `first` on has a zero point, as kernels see them: the same in all threads of a warp.
// `channel`: the instance's first filter.
template <int kN>
SPARKLE_DEVICE bool has_zero_points(const GemmRecord& record, int32_t channel, int32_t first) {
  if (record.w_sums == nullptr) return false;
  bool found = false;
  for (int32_t n = static_cast<int32_t>(lane_id()); n < kN; n += 32)
    found = found || (first + n < record.n && w_zero_of(record, channel + first + n) != 0);
  return ballot(found) != 0;
}

// Of a warpgroup: kPixels lines of 128 bytes in shared memory, one behind the other, whose chunks may lie in any order; a
// thread adds up every 128th. kSwapped: pixels are the columns of its sums, and filters their rows.
template <Operand kType, int kPixels, int kColumns, bool kSwapped>
struct PixelSums {
  static constexpr int kThreads = 128, kEach = (kPixels + kThreads - 1) / kThreads;
  bool wanted = false;
  int32_t v[kEach] = {};

  SPARKLE_DEVICE void add(SharedAddress lines, uint32_t thread) {
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const uint32_t pixel = thread + static_cast<uint32_t>(i * kThreads);
      if (pixel >= kPixels) continue;
      SPARKLE_ROLLED
      for (uint32_t chunk = 0; chunk < 8; ++chunk) {  // lanes begin at chunks of their own: no bank twice
        const Words4 words = load_shared_16(lines + pixel * 128 + (chunk ^ (pixel % 8)) * 16);
        SPARKLE_UNROLL
        for (int j = 0; j < 4; ++j)
          v[i] = kType == Operand::u8 ? sum_of_unsigned_bytes(words.v[j], v[i]) : sum_of_bytes(words.v[j], v[i]);
      }
    }
    fence_async_proxy();  // the engine writes there next
    sync_warp();          // one lane lets go of the lines for all
  }

  // Off the sums of filters from `first` on, through `shared`, which is the warpgroup's: 4 bytes a pixel. `thread` of 128,
  // `barrier` their own.
  SPARKLE_DEVICE void take(const GemmRecord& record, int32_t channel, int32_t first, SharedAddress shared, uint32_t thread,
                           uint32_t barrier, int32_t (&sums)[kColumns / 2]) const {
    sync_threads(barrier, kThreads);  // no warp has sums of the tile before on their way out
    SPARKLE_UNROLL
    for (int i = 0; i < kEach; ++i) {
      const uint32_t pixel = thread + static_cast<uint32_t>(i * kThreads);
      if (pixel < kPixels) store_shared_4(shared + pixel * 4, static_cast<uint32_t>(v[i]));
    }
    sync_threads(barrier, kThreads);
    const uint32_t lane = thread % 32, first_row = thread / 32 * 16 + lane / 4, first_column = lane % 4 * 2;
    SPARKLE_UNROLL
    for (int i = 0; i < kColumns / 2; ++i) {
      const uint32_t row = first_row + static_cast<uint32_t>(i / 2 % 2 * 8);
      const uint32_t column = first_column + static_cast<uint32_t>(i / 4 * 8 + i % 2);
      const int32_t filter = first + static_cast<int32_t>(kSwapped ? row : column);
      const int32_t zero = filter < record.n ? w_zero_of(record, channel + filter) : 0;
      sums[i] -= zero * static_cast<int32_t>(load_shared_4(shared + (kSwapped ? column : row) * 4));
    }
    sync_threads(barrier, kThreads);  // sums on their way out lie there next
  }
};

}  // namespace sparkle::cuda
