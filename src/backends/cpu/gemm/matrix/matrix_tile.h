// The micro-kernel of matrix units on CPUs, for any machine of tile_machine.h: up to 2 x 2 tiles of sums, 32 rows by 32
// columns. Each step takes 64 bytes of k: a tile of 16 rows of the left operand, and a tile of the right one, 16 groups of four
// bytes of k by 16 columns. Four products of tiles so share four loads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/matrix/tile_machine.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

inline constexpr int kMatrixRows = 2 * kTileRows;
inline constexpr int kMatrixLanes = 16;  // columns of a tile
static_assert(kMatrixOverread >= 2 * kTileBytes * (kTileRows - 1));

// k that goes on without a gap in both operands, in whole steps.
struct MatrixRun {
  int64_t a = 0;  // bytes from the first row's begin
  int64_t k = 0;  // bytes of k before it in the panel of weights
  int64_t steps = 0;
};

struct MatrixOperands {
  const std::byte* a[2];  // first row of each tile of 16; the second one counts beyond 16 rows
  int64_t a_stride;       // bytes between rows
  int64_t a_step;         // bytes between steps of k
  const MatrixRun* runs;
  int64_t run_count;
  const std::byte* b;  // panel [k / 4 bytes][column][4 bytes]; runs may read kMatrixOverread beyond it
};

// Sums, 32 bits each, to [16 * kRows][16 * kColumns]. The thread's tiles are whole_tiles().
template <class Machine, TileProduct product, int kRows, int kColumns>
[[gnu::always_inline]] inline void multiply_tiles(const MatrixOperands& o, void* sums) {
  constexpr int64_t kStride = kColumns * kTileBytes;  // between rows of a tile of the right operand, and of sums
  Machine::template zero<0>();
  if constexpr (kColumns > 1) Machine::template zero<1>();
  if constexpr (kRows > 1) Machine::template zero<2>();
  if constexpr (kRows > 1 && kColumns > 1) Machine::template zero<3>();

  for (const MatrixRun *run = o.runs, *end = run + o.run_count; run != end; ++run) {
    const std::byte *a0 = o.a[0] + run->a, *a1 = o.a[1] + run->a, *b = o.b + run->k * (kColumns * kMatrixLanes);
    for (int64_t i = 0; i < run->steps; ++i, a0 += o.a_step, a1 += o.a_step, b += kTileRows * kStride) {
      Machine::template load<6>(b, kStride);
      Machine::template load<4>(a0, o.a_stride);
      Machine::template add<product, 0, 4, 6>();
      if constexpr (kColumns > 1) {
        Machine::template load<7>(b + kTileBytes, kStride);
        Machine::template add<product, 1, 4, 7>();
      }
      if constexpr (kRows > 1) {
        Machine::template load<5>(a1, o.a_stride);
        Machine::template add<product, 2, 5, 6>();
        if constexpr (kColumns > 1) Machine::template add<product, 3, 5, 7>();
      }
    }
  }

  auto* to = static_cast<std::byte*>(sums);
  Machine::template store<0>(to, kStride);
  if constexpr (kColumns > 1) Machine::template store<1>(to + kTileBytes, kStride);
  if constexpr (kRows > 1) Machine::template store<2>(to + kTileRows * kStride, kStride);
  if constexpr (kRows > 1 && kColumns > 1) Machine::template store<3>(to + kTileRows * kStride + kTileBytes, kStride);
}

}  // namespace sparkle::cpu
