// Gemm stages on 8-bit integers by a matrix unit: what one call of the micro-kernel gets, the table of them, and the CpuKernel
// around it. Left operands are u8 or i8 as they come, right ones i8 in panels as integer_pack.h makes them.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/matrix/matrix_tile.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

struct IntegerMatrixCall {
  MatrixOperands operands;
  int rows;                   // that exist
  const int32_t* correction;  // per column, added to the sum
  int32_t row_correction[kMatrixRows];
  const int32_t* b_zero;  // per column, times the sum of the row is taken off; nullptr: the corrections hold all
  int32_t row_sum[kMatrixRows];
  int64_t columns;     // of the panel that exist
  const float* scale;  // per column; nullptr: sums are stored as they are (i32)
  float low, high;     // bounds of the scaled sum
  int32_t y_zero;
  std::byte* y[kMatrixRows];  // of column 0
  int64_t y_bytes;            // from there to the panel's first column
  void* row(int r) const { return y[r] + y_bytes; }
};
using IntegerMatrixKernel = void (*)(const IntegerMatrixCall& call);

struct IntegerMatrixKernels {
  // Around all calls of a task: its thread's tiles are set up and given back.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
  IntegerMatrixKernel tile[2][2][2] = {};  // [left is i8][tiles of 16 rows - 1][of 16 columns - 1]
};
// The kernels of a math unit, or nullptr where this build has none.
const IntegerMatrixKernels* integer_matrix_kernels_of(std::string_view unit);

// Errors: backend_lacks_variant (another tile than 32 rows by up to 2 x 16 columns), layout_not_served, type_not_served.
Result<CpuKernelPtr> make_integer_matrix(const Stage& stage, const GemmSchedule& schedule, const IntegerMatrixKernels& kernels,
                                         bool constant_weights);

}  // namespace sparkle::cpu
