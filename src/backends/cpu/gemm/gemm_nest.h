// The loops around the micro-kernel: blocks of rows and columns over threads, chunks of k, tiles and panels.
#pragma once

#include "backends/cpu/gemm/gemm_operands.h"
#include "base/system/executor.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

void run_gemm(const GemmGeometry& geometry, const GemmSchedule& schedule, const Epilogue& epilogue, const TileKernels& tiles,
              const GemmOperands& operands, Executor& executor);

}  // namespace sparkle::cpu
