// How many bytes of each memory there are. What a thread has read it adds up, so that nothing is left out.
#include "backends/cuda/kernels/roofs/roof_record.h"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

using namespace sparkle::cuda;

namespace {

SPARKLE_DEVICE uint32_t added(const Words4& w) { return w.v[0] + w.v[1] + w.v[2] + w.v[3]; }
SPARKLE_DEVICE const Words4* from(const RoofRecord& record) { return static_cast<const Words4*>(record.from); }
SPARKLE_DEVICE Words4* copied(const RoofRecord& record) { return static_cast<Words4*>(record.copied); }
SPARKLE_DEVICE uint32_t thread_of_all() { return block_x() * kRoofThreads + thread_id(); }

// All blocks together read all vectors in each round, past the L1, and write them where kCopies.
template <bool kCopies>
SPARKLE_DEVICE void move(const RoofRecord& record) {
  const uint32_t threads = grid_x() * kRoofThreads;
  uint32_t sums[kRoofReads] = {};
  SPARKLE_ROLLED
  for (uint32_t round = 0; round < record.rounds; ++round) {
    uint32_t at = thread_of_all();
    SPARKLE_ROLLED
    for (; at + (kRoofReads - 1) * threads < record.count; at += kRoofReads * threads) {
      Words4 words[kRoofReads];
      SPARKLE_UNROLL
      for (int i = 0; i < kRoofReads; ++i) words[i] = load_coherent(from(record) + at + i * threads);
      SPARKLE_UNROLL
      for (int i = 0; i < kRoofReads; ++i) {
        if constexpr (kCopies) store_global(copied(record) + at + i * threads, words[i]);
        sums[i] += added(words[i]);
      }
    }
    for (; at < record.count; at += threads) {
      const Words4 words = load_coherent(from(record) + at);
      if constexpr (kCopies) store_global(copied(record) + at, words);
      sums[0] += added(words);
    }
  }
  store_global(record.to + thread_of_all(), sums[0] + sums[1] + sums[2] + sums[3]);
}

}  // namespace

SPARKLE_KERNEL(sparkle_roof_read, RoofRecord, kRoofThreads, 4) { move<false>(record); }
SPARKLE_KERNEL(sparkle_roof_copy, RoofRecord, kRoofThreads, 4) { move<true>(record); }

// Each block reads all vectors, which lie in its L1, again and again: other ones by each thread in each round.
SPARKLE_KERNEL(sparkle_roof_near, RoofRecord, kRoofThreads, 4) {
  uint32_t sums[kRoofReads] = {};
  SPARKLE_ROLLED
  for (uint32_t round = 0; round < record.rounds; ++round) {
    SPARKLE_UNROLL
    for (int i = 0; i < kRoofReads; ++i)
      sums[i] += added(load_global(from(record) + ((thread_id() + i * kRoofThreads + 32 * round) & (record.count - 1))));
  }
  store_global(record.to + thread_of_all(), sums[0] + sums[1] + sums[2] + sums[3]);
}

SPARKLE_KERNEL(sparkle_roof_shared, RoofRecord, kRoofThreads, 4) {
  const SharedAddress shared = shared_base();
  for (uint32_t at = 16 * thread_id(); at < kRoofSharedBytes; at += 16 * kRoofThreads)
    store_shared_16(shared + at, Words4{{record.ones, record.ones, record.ones, record.ones}});
  sync_block();
  uint32_t sum = 0;
  SPARKLE_ROLLED
  for (uint32_t round = 0; round < record.rounds; ++round) {
    SPARKLE_UNROLL
    for (int i = 0; i < kRoofSharedReads; ++i) {  // at other places each time, or the compiler reads once
      const uint32_t at = 16 * thread_id() + 16 * kRoofThreads * i + 512 * round;
      sum += added(load_shared_16(shared + (at & (kRoofSharedBytes - 1))));
    }
  }
  store_global(record.to + thread_of_all(), sum);
}
