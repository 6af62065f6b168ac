// A reduction of an fp32 tensor of any layout over any axes into one double per group, compiled for one unit. A group is what
// one output element is made of; groups are numbered densely in the order of x's memory.
#pragma once

#include "backends/cpu/loop_nest.h"
#include "backends/cpu/reduce/fold.h"
#include "base/system/executor.h"
#include "base/result.h"

namespace sparkle::cpu {

class ReduceLoop {
 public:
  // `grain`: elements of x per task.
  static Result<ReduceLoop> make(const TensorDesc& x, const Dims& axes, std::string_view unit, int64_t grain);

  int64_t groups() const { return groups_; }
  int64_t count() const { return count_; }  // elements of a group
  // Distance in group numbers along each of x's axes, 0 for reduced ones: the strides of a tensor of one value per group.
  const Dims& group_stride() const { return group_strides_; }
  // Doubles that run() needs beside the totals.
  int64_t partials() const { return chunks_ > 1 ? groups_ * chunks_ : 0; }

  // x: element (0, ..., 0); shift: one float per group or nullptr; totals: one double per group.
  void run(Fold fold, const float* x, const float* shift, double* totals, double* partials, Executor& executor) const;

 private:
  struct Axes {  // a part of the nest: sizes and x's strides
    Dims size, strides;
    int64_t offset(int64_t linear) const;
  };
  void fold_rows(const FoldFunctions& f, Fold fold, const float* x, const float* shift, int64_t item, double* total) const;
  void fold_block(const FoldFunctions& f, Fold fold, const float* x, const float* shift, int64_t item, double* totals) const;

  std::string unit_;
  int64_t grain_ = 0;
  int64_t groups_ = 1, count_ = 1;
  Dims group_strides_;
  bool columns_kept_ = false;  // the innermost axis is kept: rows are folded into a row
  Axes kept_, reduced_;        // without the innermost axis
  Axes kept_groups_;           // kept_ with group strides
  int64_t columns_ = 1, column_stride_ = 1;
  int64_t outer_groups_ = 1, reduced_rows_ = 1;
  int64_t repeat_ = 1;       // neighbouring rows of few columns are taken this many at a time as one
  int64_t last_repeat_ = 1;  // ... in the last of the innermost reduced axis
  int64_t blocks_ = 1;       // blocks of columns
  int64_t chunks_ = 1;       // parts of a group's elements
};

}  // namespace sparkle::cpu
