// Indices that lie outside, told to the host (backends/bounds_reports.h).
#pragma once

#include "backends/cuda/ptx/memory.cuh"
#include "backends/cuda/ptx/threads.cuh"

namespace sparkle::cuda {

inline constexpr uint32_t kMostSeen = 16;  // as in backends/bounds_reports.h

// The first place is kept, and what lay there is among the last that were seen to be first.
SPARKLE_DEVICE void report_outside(uint32_t* to, uint32_t number, int64_t value) {
  if (atomic_min(to, number) <= number) return;
  uint32_t* seen = to + 2 + 3 * (atomic_add(to + 1, 1) % kMostSeen);
  store_global(seen, number);
  store_global(seen + 1, static_cast<uint32_t>(value));
  store_global(seen + 2, static_cast<uint32_t>(value >> 32));
}

SPARKLE_DEVICE int64_t index_at(const void* indices, bool is_long, int64_t at) {
  return is_long ? static_cast<int64_t>(load_global(static_cast<const uint64_t*>(indices) + at))
                 : load_global(static_cast<const int32_t*>(indices) + at);
}
// Counted from the begin; one that lies outside is taken to the nearest element of its axis.
SPARKLE_DEVICE int64_t index_within(int64_t index, int64_t size) {
  const int64_t counted = index < 0 ? index + size : index;
  return counted < 0 ? 0 : counted < size ? counted : size - 1;
}

}  // namespace sparkle::cuda
