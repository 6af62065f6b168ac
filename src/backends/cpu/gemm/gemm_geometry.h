// The loop nest of a gemm stage as data: instances (groups, batches of weights), classes of rows that see the same filter
// taps, runs of k that are contiguous in memory, panels of columns. Built once when a stage is compiled.
#pragma once

#include <array>
#include <vector>

#include "backends/cpu/gemm/gemm_tile.h"
#include "base/result.h"
#include "families/gemm/gemm.h"
#include "families/stage.h"

namespace sparkle::cpu {

// An axis along which rows (pixels) are counted; outer axes first.
struct RowAxis {
  int64_t count = 1;
  int64_t a = 0, y = 0, residual[2] = {0, 0};  // strides
};

// Rows that see the same taps: a box of output pixels over all images.
struct RowClass {
  std::array<RowAxis, 4> axes;  // the innermost is axes[3]
  int64_t rows = 0;
  int64_t a = 0, y = 0, residual[2] = {0, 0};  // offsets of the first row
  int64_t first_tile = 0, tiles = 0;           // rows are spread evenly over tiles
  std::vector<std::vector<GemmRun>> chunks;    // per chunk of k
  std::vector<int64_t> steps;                  // per chunk: the length of its runs together
};

struct GemmInstance {
  int64_t a = 0, y = 0, residual[2] = {0, 0};
  int64_t weights = 0;  // which packed matrix
  int64_t column = 0;   // first column in terms of bias and scale, in padded columns
};

struct GemmPanel {
  int64_t column = 0;   // first column
  int64_t columns = 0;  // of which so many exist
  int vectors = 0;
};

// The right operand: where element (matrix, k, n) lies. k counts taps outside, channels inside: [t][r][s][c].
struct GemmWeights {
  int64_t matrices = 1;
  std::array<int64_t, 6> matrix_count{1, 1, 1, 1, 1, 1}, matrix_strides{};  // batch axes, or groups as the last one
  std::array<int64_t, 4> k_count{1, 1, 1, 1}, k_strides{};                  // t, r, s, c
  int64_t n = 0, n_stride = 0;
  int64_t k() const { return k_count[0] * k_count[1] * k_count[2] * k_count[3]; }
  // Offset of a matrix.
  int64_t matrix_at(int64_t matrix) const {
    int64_t at = 0;
    for (size_t i = 6; i-- > 0; matrix /= matrix_count[i]) at += matrix % matrix_count[i] * matrix_strides[i];
    return at;
  }
};

struct CopyAxis {
  int64_t count = 1, from = 0, to = 0;  // strides
};

struct GemmGeometry {
  std::vector<GemmInstance> instances;
  std::vector<RowClass> classes;
  std::vector<GemmPanel> panels;
  int widest = 1;  // of the panels, in vectors
  GemmWeights weights;
  int64_t tiles = 0;            // of one instance
  int64_t outputs = 0;          // of all
  int64_t n = 0, padded_n = 0;  // columns of one instance; rounded up to vectors
  int64_t k = 0;
  int chunks = 1;
  int64_t kc = 0;                        // length of a chunk
  int64_t residual_strides[2] = {0, 0};  // along the columns
  // Left operand of a dense stage whose k stride is not 1: copied first, k innermost. Empty: used in place.
  std::vector<CopyAxis> copy_a;  // outer axes first, k last
  int64_t copied_a = 0;          // floats of the copy
};

Result<GemmGeometry> gemm_geometry(const Stage& stage, const GemmSchedule& schedule, int64_t lanes);

}  // namespace sparkle::cpu
