// Sums that several blocks share along k: each leaves its part in memory, and the one that comes last adds them all, in their
// order, so that the result does not depend on who that is.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

namespace sparkle::cuda {

// Of `kThreads` threads, this one `thread`, that sync() synchronises; `tile` counts the tiles of all instances, `word` is 4
// bytes of shared memory that nobody uses before the next sync(). Whether this block is the last and `sums` are whole.
template <class Sum, int kPieces, int kThreads, class Sync>
SPARKLE_DEVICE bool add_splits(const GemmRecord& record, int64_t tile, int32_t split, uint32_t thread, SharedAddress word,
                               Sum (&sums)[kPieces][4], Sync sync) {
  Words4* const parts = reinterpret_cast<Words4*>(record.partial) + tile * record.splits * (kPieces * kThreads) + thread;
  Words4* const own = parts + int64_t{split} * (kPieces * kThreads);
  SPARKLE_UNROLL
  for (int i = 0; i < kPieces; ++i) {
    Words4 w;
    SPARKLE_UNROLL
    for (int e = 0; e < 4; ++e) w.v[e] = __builtin_bit_cast(uint32_t, sums[i][e]);
    store_global(own + i * kThreads, w);
  }
  fence_device();
  sync();
  if (thread == 0) store_shared_4(word, atomic_add(record.counters + tile, 1));
  sync();
  if (load_shared_4(word) + 1 != static_cast<uint32_t>(record.splits)) {
    sync();  // all have read the word
    return false;
  }
  fence_device();
  if (thread == 0) store_global(record.counters + tile, 0u);
  SPARKLE_UNROLL
  for (int i = 0; i < kPieces; ++i) {
    Sum total[4] = {};
    SPARKLE_ROLLED
    for (int32_t part = 0; part < record.splits; ++part) {
      const Words4 w = load_coherent(parts + int64_t{part} * (kPieces * kThreads) + i * kThreads);
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) total[e] += __builtin_bit_cast(Sum, w.v[e]);
    }
    SPARKLE_UNROLL
    for (int e = 0; e < 4; ++e) sums[i][e] = total[e];
  }
  sync();
  return true;
}

}  // namespace sparkle::cuda
