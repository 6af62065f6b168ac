// Tensor maps of a product's operands, for kernels whose copying engine reads them (kernels/gemm_tma_record.h).
#pragma once

#include "backends/cuda/stages/products/gemm_record.h"
#include "families/gemm/cuda/cuda_halo.h"
#include "families/gemm/cuda/cuda_tiles.h"

namespace sparkle::cuda {

// Has a launch with GemmTmaRecord make maps of gemm.x and gemm.w once its addresses are known. `setup.record` is complete.
void map_operands(KernelLaunch& launch, const Workshop& shop, const Stage& stage, const GemmSetup& setup, const CudaTile& tile,
                  int cluster);
// The same of a launch with GemmHaloRecord.
void map_halo(KernelLaunch& launch, const Workshop& shop, const Stage& stage, const GemmSetup& setup, const CudaTile& tile,
              const HaloTile& halo);

}  // namespace sparkle::cuda
