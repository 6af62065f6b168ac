// The register-tile kernels of gemm stages on 8-bit integers: what one call gets, and the table of them per math unit. Left
// operands are u8, right ones i8 in groups of four along k: [k / 4][column][4]. Units that multiply 16-bit pairs read rows that
// were widened once for all panels, and groups of two: [k / 2][column][2].
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/cpu/gemm/gemm_tile.h"

namespace sparkle::cpu {

struct IntegerTileCall {
  const uint8_t* a[kMaxTileRows];  // origin of each row
  const int16_t* wide;             // the rows widened, one run after the other; units with `widen` read it instead of `a`
  int64_t wide_stride;             // between rows
  const GemmRun* runs;             // lengths and places are multiples of four
  int64_t run_count;
  const int8_t* b;            // panel of packed weights
  const int32_t* correction;  // per column, added to the sum
  int32_t row_correction[kMaxTileRows];
  const int32_t* b_zero;  // per column, times the sum of the row is taken off; nullptr: the corrections hold all
  int32_t row_sum[kMaxTileRows];
  int64_t columns;        // of the panel that exist
  const float* scale;     // per column; nullptr: sums are stored as they are (i32)
  float low, high;        // bounds of the scaled sum
  void* y[kMaxTileRows];  // i32, or 8-bit integers
  int32_t y_zero;         // behind y: a compiler read it and half of y[0] at once, which waits for both stores
  void* row(int r) const { return y[r]; }
};
using IntegerTileKernel = void (*)(const IntegerTileCall& call);
// The sums of the rows' bytes over the runs, to row_sum.
using IntegerRowSums = void (*)(IntegerTileCall& call, int rows);
// The rows' bytes over the runs, widened, to what `wide` of the call points at.
using IntegerWiden = void (*)(const IntegerTileCall& call, int rows, int16_t* to);

struct IntegerTileKernels {
  int64_t lanes = 0;
  int max_rows = 0, max_vectors = 0;
  bool signed_left = false;  // tiles multiply the left operand less 128
  int group = 4;             // weights of a column that lie side by side
  IntegerRowSums row_sums = nullptr;
  IntegerWiden widen = nullptr;                                // units that multiply bytes have none
  IntegerTileKernel tile[kMaxTileRows][kMaxTileVectors] = {};  // [rows - 1][vectors - 1]
};
// The kernels of a math unit, or nullptr where this build has none.
const IntegerTileKernels* integer_tile_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
