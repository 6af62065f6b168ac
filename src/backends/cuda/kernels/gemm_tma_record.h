// GemmTmaRecord: what the kernels of sm_90a are launched with. x is an im2col map of rank 4 over c,w,h,n: columns of 128 bytes
// of channels by the tile's m pixels, corners -pad and (out - 1) * stride + 1 - size - pad, element strides the window's,
// swizzle of 128 bytes, zeros outside. w is a tiled map of rank 3 over channels (of an instance), taps, filters (of all
// instances): boxes of 128 bytes x 1 x (tile's n / cluster), the same swizzle. A matrix product is a window of one tap over one
// row of pixels.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"
#include "backends/cuda/ptx/operand.h"

namespace sparkle::cuda {

// The kernels are persistent: any number of blocks (a multiple of the cluster) shares tiles, splits and instances. Read of
// `gemm` are: m, n, rows_by, filter (of h and w; d has one tap), stride, dilation, pad, instances (the innermost), tiles_m (a
// multiple of the cluster, tiles beyond m are empty), tiles_n, swath, splits, split_steps, and what the epilogue reads.
//
// Outputs whose rows (of n + what is between) lie one behind the other may leave by the engine too, and a residual of theirs
// come by it: of 16 bits, of f32 from products in TF32, of bytes from products of bytes. y is a tiled map of rank 2 over the
// columns of all instances and rows, boxes of 128 bytes x kBoxRows; residual one of rank 3 over columns, 1, rows, boxes of 128
// bytes x 1 x the tile's m; both with the swizzle of 128 bytes. Then there is at most one residual, none with splits, and n is
// 128 bytes or more times that where there are several instances, else 16: stores end at whole 16 bytes. Where pixels outside
// of the image take part in zero points, kernels on bytes store by themselves all the same.
inline constexpr int kBoxRows = 16, kBoxBytes = kBoxRows * 128;

struct GemmTmaRecord {
  TensorMap x, w, y, residual;
  GemmRecord gemm;
  int32_t channel_steps = 1;  // of 128 bytes in an instance's channels
  int32_t x_instance = 0;     // channels from one instance to the next: a multiple of 128 bytes where there are several
  int32_t w_instance = 0;     // filters
  int32_t boxes = 0;          // 1: y and residual are maps
};

}  // namespace sparkle::cuda
