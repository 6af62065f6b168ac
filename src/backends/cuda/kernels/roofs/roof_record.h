// What kernels that measure rates are launched with. Each thread leaves a number in `to` that tells whether it did what it is
// timed for; rates are those of the host's (backends/cuda/roofs.h).
#pragma once

#include <cstdint>

namespace sparkle::cuda {

inline constexpr int kRoofThreads = 256, kRoofWarps = kRoofThreads / 32;
// Of a thread: chains that do not wait for each other, and products of each in a round.
inline constexpr int kRoofFmaChains = 16, kRoofFmaProducts = 8;
// Of a warp: sums of 16 x 8.
inline constexpr int kRoofMmaChains = 8, kRoofMmaProducts = 4;
// Of a warpgroup: 64 x 256 sums, 128 bytes of k in a round.
inline constexpr int kRoofGroups = 2, kRoofColumns = 256, kRoofGroupProducts = 4;
inline constexpr int kRoofGroupBytes = (64 * kRoofGroups + kRoofColumns) * 128;
// Of a thread in a round: reads of 16 bytes.
inline constexpr int kRoofReads = 4, kRoofSharedReads = 8, kRoofSharedBytes = kRoofThreads * 16 * kRoofSharedReads;

struct RoofRecord {
  const void* from = nullptr;  // vectors of 16 bytes
  void* copied = nullptr;
  uint32_t* to = nullptr;  // a number of each thread
  uint32_t count = 0;      // of vectors; a power of two where each block reads all of them
  uint32_t rounds = 0;
  uint32_t ones = 0;  // ones in an operand's type, side by side
  float one = 0;
};

}  // namespace sparkle::cuda
