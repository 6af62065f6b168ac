// The tiles that CUDA's product kernels are made for: unlike shaders, whose tiles are constants of a pipeline, each is compiled
// ahead, and few are. Tests hold the list against the kernels that there are (src/backends/cuda/stages/gemm_test.cc).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "device/device.h"
#include "families/family.h"
#include "families/gemm/gemm.h"
#include "families/loops/tile_schedule.h"
#include "families/stage.h"

namespace sparkle {

// Operands of 16 bits multiplied on CUDA cores.
inline constexpr std::string_view kCudaWidened = "fma_widened";

struct CudaTile {
  std::string_view variant;  // "fma", "mma", "wmma", "wgmma", "wgmma_pairs", ..._elements, ..._in_turn
  int m = 0, n = 0, k_bytes = 0;
  int part_m = 0, part_n = 0;  // of a thread, or on matrix units of what multiplies together: a warp, or four
  int stages = 0, threads = 0;
  int registers = 0;  // of a thread, as nvcc 13.0 takes for sm_80
  int cluster = 1;    // blocks along m that share the right operand
};
// nullptr: no such tile.
const CudaTile* cuda_tile(std::string_view variant, int m, int n);
inline const CudaTile* cuda_tile(const TileSchedule& s) { return cuda_tile(s.variant, s.m, s.n); }
int64_t shared_bytes(const CudaTile& tile);

// Whether a variant of the gemm family is one of CUDA's.
bool is_cuda_product(std::string_view variant);
// Whether the left operand of a stage comes in runs of 16 bytes of channels, which asynchronous copies take.
bool in_chunks(const Stage& stage);
// Whether the copying engine of sm_90 can gather it: two spatial dimensions, one product or groups of whole lines.
bool in_columns(const Stage& stage);
// Clocks of a core for a step of k, where pixels that come element by element keep its integer lanes or issue longer than that
// takes; 0: they do not come so.
double clocks_by_elements(const CudaTile& tile, const Stage& stage);
// Whether a thread's eight outputs of a row lie side by side without being whole stores of 16 bytes: it stores each by itself.
bool stores_by_elements(const Stage& stage);
// The ending of a unit's and a kernel's name for what a stage multiplies: "f32", "f16", "bf16", "tf32"; empty: no kernel does.
std::string_view cuda_operand(const Stage& stage);

std::vector<Schedule> gemm_cuda_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not);

}  // namespace sparkle
