// What a run of a gemm stage hands to its loops, and what of it is laid into the workspace first: bias and scale padded to
// whole vectors, the left operand where its k is not contiguous.
#pragma once

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_geometry.h"

namespace sparkle::cpu {

struct GemmOperands {
  const float* a = nullptr;
  const void* b = nullptr;       // packed, in the type of the kernels
  const float* scale = nullptr;  // padded columns; nullptr: 1
  const float* bias = nullptr;   // padded columns
  const float* residual[2] = {nullptr, nullptr};
  float* y = nullptr;
};

// Places in the workspace, in bytes; the bias comes first. One array of factors serves scale and alpha.
struct GemmWorkspace {
  bool has_scale = false;
  int64_t scale_at = 0, copy_at = 0;
  int64_t bytes = 0;
};
GemmWorkspace gemm_workspace(const GemmParams& params, const GemmGeometry& geometry);

// `weights`: packed.
GemmOperands gemm_operands(const Stage& stage, const GemmGeometry& geometry, const GemmWorkspace& workspace,
                           const CpuLaunch& launch, const void* weights);

}  // namespace sparkle::cpu
