// How GPUs share out rows of elements that belong together (those of one reduction, one softmax, one norm) among workgroups.
#pragma once

#include <cstdint>

#include "base/tensor.h"

namespace sparkle {

inline constexpr int64_t kRowThreads = 128;  // of a workgroup

struct RowGroups {
  int64_t rows = 1, elements = 1;
  bool lanes_first = false;            // neighbouring threads serve neighbouring rows, else elements of one row
  int64_t lanes = 1, depth = 1;        // rows of a workgroup, threads of each of them
  int64_t groups = 1;                  // that all rows take
  int64_t parts = 1, part_length = 1;  // of each row, for a workgroup of their own each
};

// `within`: bit i tells that axis i of x runs within a row. `parts`: whether rows may be cut, where there are few.
RowGroups row_groups(const TensorDesc& x, uint32_t within, bool parts);

}  // namespace sparkle
