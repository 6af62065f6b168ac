// The register-tile kernels of the gemm family, one set per math unit: what one call gets, and the table of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/dtype.h"
#include "families/values/epilogue.h"

namespace sparkle::cpu {

inline constexpr int kMaxTileRows = 6;
inline constexpr int kMaxTileVectors = 4;
// Narrow panels leave registers for two tiles of rows in one call.
inline constexpr int kMaxCallRows = 2 * kMaxTileRows;
// Widest vectors supported: SVE of 2048 bits.
inline constexpr int64_t kMaxLanes = 64;

// Consecutive elements of k that lie next to each other in memory for every row of the tile.
struct GemmRun {
  int64_t a = 0;  // offset from the row's origin
  int64_t k = 0;  // first row of the weight panel
  int64_t length = 0;
};

struct TileCall {
  // -- sum
  const float* a[kMaxCallRows];  // origin of each row (pixel); only addresses inside the input are read
  int64_t a_stride;              // between the rows of a call of more than kMaxTileRows
  const GemmRun* runs;
  int64_t run_count;
  const void* b;          // panel of packed weights, rows of nr vectors, in the type of the kernels
  int64_t column_stride;  // elements between columns of a panel that holds one after another
  const char* prefetch;   // fetched along the way; must be mapped memory, see gemm_nest.cc
  int64_t prefetch_step;  // bytes per step of k; 0: nothing to fetch
  int64_t spacing;        // steps of k after which lines of another row of residuals and y are fetched; 0: never
  // -- partial sums, dense rows of nr vectors; used where begin_at_zero or finish is false
  float* partial;
  bool begin_at_zero;
  bool finish;  // epilogue and store to y, else store to partial
  // -- epilogue of the fast form: scale, bias, residuals, clamp. Arrays are padded to whole vectors.
  bool clamp_below, clamp_above;
  int residuals;
  float low, high;
  const float* scale;  // nullptr: 1
  const float* bias;   // never nullptr
  int64_t column;      // added to y and residual
  const float* residual[2][kMaxCallRows];
  float* y[kMaxCallRows];
};
using TileKernel = void (*)(const TileCall& call);

// What the general epilogue needs for one tile whose raw sums lie in `sums`.
struct FinishCall {
  float* sums;  // dense rows of sums_stride, whole vectors; used as scratch
  int64_t sums_stride;
  int rows;
  int64_t columns;
  const float* scale;
  const float* bias;
  int residuals_before, residuals_after;
  const float* residual[2][kMaxCallRows];
  int64_t residual_strides[2];  // along the columns
  Activation activation;
  float activation_a, activation_b;
  float* y[kMaxCallRows];
};

struct TileKernels {
  int64_t lanes = 0;
  int max_vectors = 0;
  int tall_vectors = 0;  // widest panel that calls of more than kMaxTileRows serve
  // [prefetch into L2][vectors of the widest panel - 1][rows - 1][vectors - 1], read by at()
  TileKernel tile[2][kMaxTileVectors][kMaxCallRows][kMaxTileVectors] = {};
  void (*finish)(const FinishCall& call) = nullptr;
  bool columns_apart = false;  // panels hold one column after another, not one row of k after another
  int64_t weight_bytes = 4;
  // Weights of 16 bits: rounds `count` numbers, whole vectors of them, to that type.
  void (*narrow)(const float* from, void* to, int64_t count) = nullptr;

  // The kernel for a panel of `vectors` in a product whose widest panel has `widest`: the order in which a column's products
  // are added up goes by the widest, so that columns of equal weights have equal sums, bit for bit, wherever they stand.
  TileKernel at(bool into_l2, int64_t rows, int64_t vectors, int64_t widest) const {
    return tile[into_l2][widest - 1][rows - 1][vectors - 1];
  }
  // One kernel, whatever is fetched and however wide the others are.
  void set(int rows, int vectors, TileKernel kernel) {
    for (auto& level : tile)
      for (auto& widest : level) widest[rows - 1][vectors - 1] = kernel;
  }
};
// The kernels of a math unit, or nullptr where this build has none.
const TileKernels* tile_kernels_of(std::string_view unit);
// Those for weights stored as f16 or bf16; without lanes where this build has none.
TileKernels tile_kernels_16(std::string_view unit, DType weights);
// With single numbers in the place of vectors, in a unit's instructions (scalar_tile.cc), or nullptr.
const TileKernels* scalar_kernels_of(std::string_view unit);
// Of up to four columns, summed over the vectors of a row (row_dots.cc), or nullptr.
const TileKernels* row_dot_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
