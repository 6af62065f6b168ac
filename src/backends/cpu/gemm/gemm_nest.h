// The loops around the micro-kernel: blocks of rows and columns over threads, chunks of k, tiles and panels.
#pragma once

#include "backends/cpu/gemm/gemm_geometry.h"
#include "base/system/executor.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

struct GemmOperands {
  const float* a = nullptr;
  const void* b = nullptr;       // packed, in the type of the kernels
  const float* scale = nullptr;  // padded columns; nullptr: 1
  const float* bias = nullptr;   // padded columns
  const float* residual[2] = {nullptr, nullptr};
  float* y = nullptr;
};
void run_gemm(const GemmGeometry& geometry, const GemmSchedule& schedule, const Epilogue& epilogue, const TileKernels& tiles,
              const GemmOperands& operands, Executor& executor);

}  // namespace sparkle::cpu
