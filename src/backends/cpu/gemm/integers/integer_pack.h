// Operands of gemm stages on 8-bit integers in the forms that the micro-kernels read. Left: u8 with k contiguous and padded to
// whole groups of four; i8 is moved by 128. Right: i8 in panels [matrix][panel][k / 4][column][4], u8 moved by -128, and behind
// them per matrix and tap the sum of each column, from which zero points and moved ranges are corrected. Groups of two instead
// of four where the unit multiplies pairs.
#pragma once

#include "backends/cpu/gemm/gemm_geometry.h"
#include "base/system/executor.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

// A stage whose operands have padded k, and how its operands come from the real ones.
struct IntegerGeometry {
  GemmGeometry gemm;         // of the padded stage
  int64_t taps = 1;          // of the filter
  int64_t depth = 0;         // real k per tap
  int64_t padded_depth = 0;  // rounded up to groups of four
  bool copies = false;       // the left operand is copied
  bool move_left = false;    // i8 becomes u8
  bool move_right = false;   // u8 becomes i8
  TensorDesc from, to;       // of the copy: the same rows; `depth` elements along the last axis of `from`
  int64_t copied_bytes = 0;
  int64_t packed_weights = 0;    // bytes of all panels; the sums follow
  int64_t packed_bytes() const;  // of the right operand, sums included
};
// `signed_left`: kernels multiply i8 on the left as they are.
Result<IntegerGeometry> integer_geometry(const Stage& stage, const GemmSchedule& schedule, int64_t lanes,
                                         bool signed_left = false);

void copy_left(const IntegerGeometry& g, const uint8_t* a, uint8_t* copy, Executor& executor);
void pack_weights(const IntegerGeometry& g, int64_t lanes, int64_t group, const uint8_t* weights, std::byte* packed,
                  Executor& executor);

}  // namespace sparkle::cpu
