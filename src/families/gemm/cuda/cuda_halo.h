// Tiles of the variant "wgmma_halo": some rows of an image's outputs with all columns of the input that they see, which come to
// shared memory once for all taps (backends/cuda/kernels/gemm_halo.cuh).
#pragma once

#include <optional>

#include "families/stage.h"

namespace sparkle {

inline constexpr std::string_view kCudaHalo = "wgmma_halo";
// Columns of a tile, of outputs and of what stands between their rows; filters; pixels that have room in shared memory, slots
// of them, and of a tap's filters.
inline constexpr int kCudaHaloColumns = 416, kCudaHaloFilters = 64, kCudaHaloPixels = 536, kCudaHaloSlots = 2,
                     kCudaHaloTaps = 10;

struct HaloTile {
  int64_t rows = 0, box_rows = 0;  // of outputs and inputs
  int64_t width = 0;               // columns of inputs
  int64_t of_image = 0, all = 0;   // tiles
};
// Nothing where the stage is no window of stride 1 with several taps over images, or its surroundings have no room.
std::optional<HaloTile> halo_tile(const Stage& stage);

}  // namespace sparkle
