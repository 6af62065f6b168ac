// GemmHaloRecord: what the halo kernels of sm_90a are launched with, for windows of stride 1. A tile is some rows of an image's
// outputs, all `width` columns of the input that they see: pixels lie in shared memory as one list, in which a tap is a step of
// r * width + s.
//
// x is a tiled map of rank 4 over c,w,h,n: boxes of 128 bytes of channels by `width` by `box_rows` by 1. w is the map of
// gemm_tma_record.h, boxes of kHaloN filters. Both have the swizzle of 128 bytes, and zeros outside.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"
#include "backends/cuda/ptx/operand.h"

namespace sparkle::cuda {

// Pixels of a block's tile (two warpgroups' products of 208 columns), filters, pixels that have room in a slot of shared
// memory, slots of pixels, and of a tap's filters.
inline constexpr int kHaloM = 416, kHaloN = 64, kHaloSlotPixels = 536, kHaloSlots = 2, kHaloTaps = 10;
// Whether it serves a window: width = Q + (S - 1) * dilation, box_rows = rows + (R - 1) * dilation.
constexpr bool halo_fits(int64_t width, int64_t rows, int64_t box_rows, int64_t last_tap) {
  return width <= 256 && box_rows <= 256 && rows >= 1 && rows * width <= kHaloM && box_rows * width <= kHaloSlotPixels &&
         kHaloM + last_tap <= kHaloSlotPixels;
}
constexpr int64_t halo_shared_bytes() {
  return int64_t{kHaloSlots} * kHaloSlotPixels * 128 + kHaloTaps * kHaloN * 128 + 8 * 16 * (16 * 4 + 16) +
         16 * (kHaloSlots + kHaloTaps);
}

// Read of `gemm`: as gemm_tma_record.h says, but for splits and tiles_m: tiles are images times `tiles_of_image`.
struct GemmHaloRecord {
  TensorMap x, w;
  GemmRecord gemm;
  int32_t channel_steps = 1, x_instance = 0, w_instance = 0;
  int32_t rows = 1, box_rows = 1;  // of outputs and inputs
  Divisor width_by, tiles_of_image;
};

}  // namespace sparkle::cuda
