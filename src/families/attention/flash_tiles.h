// Blocks of queries and keys that CUDA's attention kernels with a running maximum and sum are made for, which the planner, the
// launch and the kernels (backends/cuda/kernels/attention) share.
#pragma once

#include <cstdint>

namespace sparkle {

// Matrix units: depth and columns are filled up with zeros to one of these.
inline constexpr int kFlashSizes[] = {16, 32, 48, 64, 96, 128, 192, 256};
inline constexpr int kFlashKeys = 64, kFlashWarps = 4, kFlashStages = 2;
// Queries of a warp are multiplied by all keys and values, which come from shared memory once for each 16 or 32 of them: 32
// keep that memory half as busy, where registers suffice for their sums.
constexpr int flash_queries(bool is_wide) { return kFlashWarps * (is_wide ? 32 : 16); }
constexpr bool has_wide_flash(int size) { return size <= 128; }
inline constexpr int kFlashMaskRow = 2 * kFlashKeys + 16;  // bytes of a row of the mask
constexpr int64_t flash_shared_bytes(int queries, int size, bool mask) {
  return int64_t{2} * size * (queries + kFlashStages * 2 * kFlashKeys) + (mask ? queries * kFlashMaskRow : 0);
}

// CUDA cores: a thread keeps four queries by every 16th key, and by every 16th four columns.
inline constexpr int kFlashFmaSizes[] = {64, 128, 192, 256};  // columns
inline constexpr int kFlashFmaQueries = 64, kFlashFmaThreads = 256;
constexpr int flash_fma_keys(int size) { return size <= 128 ? 64 : 32; }
// Bytes of a row of so many floats: an odd number of 16 bytes, so that rows do not begin in the same bank.
constexpr int64_t flash_fma_row_bytes(int64_t floats) { return 16 * ((floats + 3) / 4 | 1); }
constexpr int64_t flash_fma_shared_bytes(int size, int64_t depth, int64_t columns) {
  const int keys = flash_fma_keys(size);
  return (kFlashFmaQueries + keys) * flash_fma_row_bytes(depth) + keys * flash_fma_row_bytes(columns) +
         kFlashFmaQueries * flash_fma_row_bytes(keys);
}

}  // namespace sparkle
