// Sums that several blocks share along k: each leaves its part in memory, and the one that comes last adds them in their order,
// so that the result does not depend on who that is. Of two the last keeps its part where it is.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"
#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

namespace sparkle::cuda {

// A tile's counter: in its lower half how many blocks have come, in its upper one how many of them have left their parts.
inline constexpr uint32_t kCame = 1, kLeft = 1u << 16;

// Of `kThreads` threads, this one `thread`, that sync() synchronises; `tile` counts the tiles of all instances, `word` is 4
// bytes of shared memory that nobody uses between the syncs around this. Whether this block is the last and `sums` are whole.
template <class Sum, int kPieces, int kThreads, class Sync>
SPARKLE_DEVICE bool add_splits(const GemmRecord& record, int64_t tile, int32_t split, uint32_t thread, SharedAddress word,
                               Sum (&sums)[kPieces][4], Sync sync) {
  constexpr int kPart = kPieces * kThreads, kAtOnce = kPieces % 8 == 0 ? 8 : 4;  // loads on their way
  static_assert(kPieces % kAtOnce == 0);
  const int32_t splits = record.splits;
  Words4* const parts = reinterpret_cast<Words4*>(record.partial) + tile * splits * kPart + thread;
  uint32_t* const counter = record.counters + tile;
  sync();  // nobody reads what lies at the word
  if (thread == 0) store_shared_4(word, atomic_add(counter, kCame) % kLeft);
  sync();
  const bool last = load_shared_4(word) + 1 == static_cast<uint32_t>(splits);
  if (!last || splits > 2) {
    SPARKLE_UNROLL
    for (int i = 0; i < kPieces; ++i) {
      Words4 w;
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        w.v[e] = __builtin_bit_cast(uint32_t, sums[i][e]);
        sums[i][e] = 0;
      }
      store_global(parts + int64_t{split} * kPart + i * kThreads, w);
    }
  }
  if (!last) {
    fence_device();
    sync();
    if (thread == 0) atomic_add(counter, kLeft);
    return false;
  }
  if (thread == 0) {  // the others are running: they have come
    wait_for_word(counter, static_cast<uint32_t>(splits) * kCame + static_cast<uint32_t>(splits - 1) * kLeft);
    fence_device();
  }
  sync();
  if (thread == 0) store_global(record.counters + tile, 0u);
  const int32_t begin = splits > 2 ? 0 : 1 - split, end = splits > 2 ? splits : begin + 1;
  SPARKLE_ROLLED
  for (int32_t part = begin; part < end; ++part) {
    const Words4* from = parts + int64_t{part} * kPart;
    SPARKLE_ROLLED
    for (int batch = 0; batch < kPieces; batch += kAtOnce, from += kAtOnce * kThreads) {
      Words4 w[kAtOnce];
      SPARKLE_UNROLL
      for (int i = 0; i < kAtOnce; ++i) w[i] = load_coherent(from + i * kThreads);
      SPARKLE_UNROLL
      for (int first = 0; first < kPieces; first += kAtOnce) {  // registers have no number at run time
        if (first != batch) continue;
        SPARKLE_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
          SPARKLE_UNROLL
          for (int e = 0; e < 4; ++e) sums[first + i][e] += __builtin_bit_cast(Sum, w[i].v[e]);
        }
      }
    }
  }
  return true;
}

}  // namespace sparkle::cuda
