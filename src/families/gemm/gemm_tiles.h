// What a workgroup of a GPU's product needs of its core: derived from the schedule alone, so that plans keep within a device's
// limits before any driver sees a shader.
#pragma once

#include "families/tile_schedule.h"

namespace sparkle {

struct TileNeeds {
  int threads = 0;  // of a workgroup
  int64_t shared_bytes = 0;
  int registers = 0;  // of a thread, in 32-bit words: an upper bound
};
TileNeeds tile_needs(const TileSchedule& schedule);

// A square of pixels and what its outputs see, for the variant "halo".
inline constexpr int kHaloSide = 8, kHaloFilters = 4, kHaloChannels = 4;

// The matrix unit that fragments run on, and its stand-in for tests: the same shader over shared memory, for devices without
// one.
inline constexpr const char* kFragmentUnit = "coopmat-f16";
inline constexpr const char* kEmulatedUnit = "coopmat-f16-emulated";
inline constexpr int kFragment = 16;    // rows, columns and depth of a fragment
inline constexpr int kShortRun = 8;     // products that the variant "half_sums" adds in f16
inline constexpr int kFragmentPad = 8;  // halves between the rows of a tile: 16 bytes, another bank for each

}  // namespace sparkle
