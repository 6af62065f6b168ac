// Gemm stages whose factors are rounded to bf16, by a matrix unit: tensors in f32, products of bf16 in tiles, sums in f32. The
// table of micro-kernels and the CpuKernel around them.
#pragma once

#include <string_view>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/gemm/matrix/matrix_tile.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

// Sums of f32 to [16 or 32 rows][16 or 32 columns].
using MatrixKernel = void (*)(const MatrixOperands& operands, float* sums);

struct MatrixKernels {
  // Around all calls of a task: its thread's tiles are set up and given back.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  MatrixKernel tile[2][2] = {};  // [tiles of 16 rows - 1][of 16 columns - 1]
};
template <class Machine>
MatrixKernels make_matrix_kernels_bf16() {
  MatrixKernels kernels;
  kernels.begin = [] { Machine::configure(whole_tiles()); };
  kernels.end = [] { Machine::release(); };
  const auto tile = []<int kRows, int kColumns>() -> MatrixKernel {
    return [](const MatrixOperands& operands, float* sums) {
      multiply_tiles<Machine, TileProduct::bf16, kRows, kColumns>(operands, sums);
    };
  };
  kernels.tile[0][0] = tile.template operator()<1, 1>(), kernels.tile[0][1] = tile.template operator()<1, 2>();
  kernels.tile[1][0] = tile.template operator()<2, 1>(), kernels.tile[1][1] = tile.template operator()<2, 2>();
  return kernels;
}
// The kernels of a math unit, or nullptr where this build has none.
const MatrixKernels* matrix_kernels_of(std::string_view unit);

// `vector_unit`: rounds operands and finishes sums. Errors: backend_lacks_variant (another tile than 32 rows by up to 2 x 16
// columns, no such vector unit), layout_not_served, type_not_served.
Result<CpuKernelPtr> make_matrix_gemm(const Stage& stage, const GemmSchedule& schedule, const MatrixKernels& kernels,
                                      std::string_view vector_unit, bool constant_weights);

}  // namespace sparkle::cpu
