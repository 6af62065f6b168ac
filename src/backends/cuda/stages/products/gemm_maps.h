// Tensor maps of a product's operands, for kernels whose copying engine reads them (kernels/gemm_tma_record.h).
#pragma once

#include <optional>

#include "backends/cuda/stages/products/gemm_record.h"
#include "families/gemm/cuda/cuda_halo.h"
#include "families/gemm/cuda/cuda_tiles.h"

namespace sparkle::cuda {

// How outputs leave by the engine and a residual comes by it, where tile and layouts permit (kernels/gemm_tma_record.h).
struct BoxMaps {
  CuTensorType type = CuTensorType::f16;
  uint32_t box_columns = 0;  // 128 bytes
  uint64_t columns = 0, rows = 0;
  uint64_t y_row = 0, residual_row = 0;  // bytes between rows; residual_row 0: there is none
};
std::optional<BoxMaps> boxes_of(const Stage& stage, const GemmSetup& setup, const CudaTile& tile, const EpiloguePlaces& places);

// Has a launch with GemmTmaRecord make maps of gemm.x and gemm.w, with `boxes` of y and the residual too, once its addresses
// are known. `setup.record` is complete.
void map_operands(KernelLaunch& launch, const Workshop& shop, const Stage& stage, const GemmSetup& setup, const CudaTile& tile,
                  int cluster, const std::optional<BoxMaps>& boxes);
// The same of a launch with GemmHaloRecord.
void map_halo(KernelLaunch& launch, const Workshop& shop, const Stage& stage, const GemmSetup& setup, const CudaTile& tile,
              const HaloTile& halo);

}  // namespace sparkle::cuda
