// Walking over the rows of a gemm stage: where each lies in the operands.
#pragma once

#include "backends/cpu/gemm/gemm_geometry.h"

namespace sparkle::cpu {

// A row's place in the operands, advanced by additions only.
class RowCursor {
 public:
  void seek(const RowClass& rows, int64_t row) {
    rows_ = &rows;
    a = rows.a, y = rows.y, residual[0] = rows.residual[0], residual[1] = rows.residual[1];
    for (size_t i = 4; i-- > 0;) {
      const RowAxis& axis = rows.axes[i];
      index_[i] = i > 0 ? row % axis.count : row;
      if (i > 0) row /= axis.count;
      move(axis, index_[i]);
    }
  }
  // Rows left before the innermost axis ends.
  int64_t straight() const { return rows_->axes[3].count - index_[3]; }
  // By no more than straight(), along a class whose rows are all one axis: its end is the end of the walk.
  void slide(int64_t steps) {
    index_[3] += steps;
    move(rows_->axes[3], steps);
  }
  // By no more than straight().
  void advance(int64_t steps) {
    index_[3] += steps;
    move(rows_->axes[3], steps);
    for (size_t i = 3; i > 0 && index_[i] == rows_->axes[i].count; --i) {
      move(rows_->axes[i], -index_[i]);
      index_[i] = 0;
      ++index_[i - 1];
      move(rows_->axes[i - 1], 1);
    }
  }
  int64_t a = 0, y = 0, residual[2] = {0, 0};

 private:
  void move(const RowAxis& axis, int64_t steps) {
    a += steps * axis.a;
    y += steps * axis.y;
    residual[0] += steps * axis.residual[0];
    residual[1] += steps * axis.residual[1];
  }
  const RowClass* rows_ = nullptr;
  int64_t index_[4] = {0, 0, 0, 0};
};

}  // namespace sparkle::cpu
