// Tensor maps of a product's operands, for kernels whose copying engine reads them (kernels/gemm_tma_record.h).
#pragma once

#include "backends/cuda/stages/products/gemm_record.h"
#include "families/gemm/cuda/cuda_halo.h"
#include "families/gemm/cuda/cuda_tiles.h"

namespace sparkle::cuda {

// What a launch with GemmTmaRecord does once its addresses are known: maps of gemm.x and gemm.w. `setup.record` is complete.
std::function<Status(std::byte* record)> map_operands(const Workshop& shop, const Stage& stage, const GemmSetup& setup,
                                                      const CudaTile& tile, int cluster);
// The same of a launch with GemmHaloRecord.
std::function<Status(std::byte* record)> map_halo(const Workshop& shop, const Stage& stage, const GemmSetup& setup,
                                                  const CudaTile& tile, const HaloTile& halo);

}  // namespace sparkle::cuda
