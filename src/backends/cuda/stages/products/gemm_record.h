// GemmRecord of a gemm stage: its sizes and strides as kernels read them; and its right operand as they want it.
#pragma once

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/kernels/gemm_record.h"
#include "families/gemm/gemm.h"

namespace sparkle::cuda {

// The right operand as it is given: strides in elements of its layout, and how many rows of `k` elements there are.
struct FilterStrides {
  int64_t matrices[4] = {1, 1, 1, 1};  // instances, outermost first, as they have a matrix of their own
  int64_t instance[4] = {};
  int64_t filter = 0;              // between the n
  int64_t size[4] = {1, 1, 1, 1};  // taps along t,r,s, channels
  int64_t strides[4] = {};
};

// `channel_multiple`: channels are padded to a multiple of it in k. Rows of w are padded to 16 bytes of elements of `w_bytes`.
// Errors: layout_not_served where an operand spans more than 2^31 elements or more than four batch axes remain.
struct GemmSetup {
  GemmRecord record;
  FilterStrides filters;
  int64_t instances = 1;
  int64_t w_elements = 0;  // of all rows, padded
};
Result<GemmSetup> gemm_setup(const Stage& stage, int64_t channel_multiple, int64_t w_bytes);

// Operands by number: scale, bias, residuals behind the two factors; -1: there is none.
struct EpiloguePlaces {
  int scale = -1, bias = -1, residual[2] = {-1, -1};
};
EpiloguePlaces epilogue_places(const Epilogue& e);

}  // namespace sparkle::cuda
