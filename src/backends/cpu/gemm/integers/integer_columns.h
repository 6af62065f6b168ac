// What is added to the sums of a gemm stage on 8-bit integers beside the products, and what they are multiplied by: lists of
// columns. With a' and b' the operands as packed and za, zb their zero points moved alike, over the k that a row really sees:
//   sum (a' - za)(b' - zb) = sum a'b' - za * sum b' - zb * sum a' + k * za * zb
// The second and last term are a correction per column (and class of rows: taps in the padding are left out, which is what
// counting them as the zero point comes to); the third one needs the sum of each row, where zb is not zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/integers/integer_pack.h"

namespace sparkle::cpu {

// Operands of a run: the left one as kernels read it, the right one packed.
struct IntegerFactors {
  const uint8_t* a;
  const std::byte* b;
  std::byte* y;
};
// A left operand that is copied lies in the workspace.
IntegerFactors integer_factors(const IntegerGeometry& geometry, const CpuLaunch& launch, const std::byte* packed);

struct IntegerColumns {
  std::unique_ptr<int32_t[]> corrections;  // [class][matrix][padded column]
  std::unique_ptr<float[]> scale;          // [matrix][padded column]; nullptr: sums as they are
  std::unique_ptr<int32_t[]> b_zero;       // like scale; nullptr: the same for all columns
  struct {
    int32_t b_zero = 0, y_zero = 0;
    float low = 0, high = 0;
  } common;

  // Whether the sums of rows are asked for.
  bool wants_row_sums() const { return b_zero || common.b_zero != 0; }
};

// The lists for a run: a few operations per column and class. `less_128`: the kernel takes 128 off the left operand as packed.
// `packed`: the right operand, with the sums of its columns.
void prepare_columns(const Stage& stage, const IntegerGeometry& geometry, bool less_128, const CpuLaunch& launch,
                     const std::byte* packed, IntegerColumns& lists);

}  // namespace sparkle::cpu
