// The left operand of a matrix unit's micro-kernel, and how a stage is cut into its tiles: which rows are read where they lie,
// how others are gathered, blocks of tiles and panels for tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/cpu/gemm/gemm_geometry.h"
#include "backends/cpu/gemm/matrix/matrix_tile.h"
#include "base/result.h"
#include "families/gemm/gemm.h"

namespace sparkle::cpu {

// What a step takes of a row. Gathered rows: [step of k][32 rows] of them. Rows beyond those of a tile are whatever was there:
// their sums go nowhere.
struct alignas(64) MatrixLine {
  std::byte bytes[kTileBytes];
};

// The runs of k of one class of rows, in whole steps of `step` elements. In gathered rows the length of each run is a multiple
// of `group`, with zeros behind its own.
class MatrixRows {
 public:
  MatrixRows(const std::vector<GemmRun>& runs, int64_t step, int64_t group = 1);

  // Of a tile of gathered rows.
  int64_t lines() const { return lines_; }
  // Whether rows may be read where they lie: each run of k is a number of whole steps.
  bool whole_steps() const { return whole_; }
  // `a`: the first row of `rows`, which are 16 or 32, `stride` elements apart.
  void read_in_place(const std::byte* a, int rows, int64_t stride, MatrixOperands& operands) const;
  // copy(from, to, count): elements of a row to a place in a line.
  template <class T, class Copy>
  void gather(const T* const* a, int rows, MatrixLine* to, MatrixOperands& operands, Copy&& copy) const {
    for (int r = 0; r < rows; ++r) {
      for (const Piece& piece : pieces_) copy(a[r] + piece.from, to[piece.line + r].bytes + piece.at, piece.count);
      for (const Rest& rest : rests_) std::memset(to[rest.line + r].bytes + rest.at, 0, static_cast<size_t>(rest.bytes));
    }
    operands.a[0] = to->bytes, operands.a[1] = to[kTileRows].bytes;
    operands.a_stride = kTileBytes, operands.a_step = int64_t{kMatrixRows} * kTileBytes;
    operands.runs = gathered_.data(), operands.run_count = static_cast<int64_t>(gathered_.size());
  }

 private:
  // Elements of a row and the place in its first line of a step; lines of a step lie side by side.
  struct Piece {
    int64_t from = 0, line = 0, at = 0, count = 0;
  };
  struct Rest {
    int64_t line = 0, at = 0, bytes = 0;
  };
  int64_t element_ = 1;  // bytes in a line
  int64_t lines_ = 0;
  bool whole_ = true;
  std::vector<MatrixRun> in_place_, gathered_;
  std::vector<Piece> pieces_;
  std::vector<Rest> rests_;
};

// Tiles [t0, t1) by panels [p0, p1) of an instance.
struct MatrixBlock {
  int64_t instance = 0, t0 = 0, t1 = 0, p0 = 0, p1 = 0;
};

// A stage in blocks for tasks: along rows, but not within blocks of the schedule's, and along columns where these are too few.
class MatrixCut {
 public:
  MatrixCut(const GemmGeometry& g, const GemmSchedule& schedule, int64_t width);
  int64_t total() const { return instances_ * row_blocks_ * column_blocks_; }
  MatrixBlock block(int64_t i) const;
  int64_t tasks = 1;

 private:
  int64_t instances_, tiles_, panels_, row_blocks_, column_blocks_;
};

// Which of the classes of rows a tile belongs to.
size_t class_of_tile(const GemmGeometry& g, int64_t tile);

// Tiles whose rows are made ready before the panels pass: one where rows are outside, else those of the schedule's `mc`.
int64_t matrix_block_tiles(const GemmSchedule& schedule, const GemmGeometry& g);

// Errors: backend_lacks_variant where the schedule's tile is not 32 rows by one or two vectors of columns.
Status check_matrix_schedule(const GemmSchedule& schedule);

}  // namespace sparkle::cpu
