// Updates as GPUs take them: axes along which they may meet at one place (serial) and others, and where their indices lead.
#pragma once

#include <vector>

#include "base/result.h"
#include "families/stage.h"

namespace sparkle {

struct ScatterUpdates {
  // An axis of the updates; strides in elements, indices, and claims. `order`: of the row-major numbers of the indices, which
  // tell the order of updates too.
  struct Axis {
    int64_t size = 1, update = 0, y = 0, index = 0, order = 0, slot = 0;
  };
  // An axis of y that an index of each tuple moves along.
  struct Picked {
    int64_t size = 1, y = 0, slot = 0;
  };
  std::vector<Axis> serial, parallel;  // none of size 1
  std::vector<Picked> picked;
  int64_t tuple_stride = 0;  // between the indices of a tuple
};

// Of the forms elements and tuples. Neighbours along the last of the parallel axes lie nearest in y.
ScatterUpdates scatter_updates(const Stage& stage);
// Tuples alone, not the elements of the slices that they name.
ScatterUpdates without_slices(const ScatterUpdates& updates, const Stage& stage);
// What is said of the index with this row-major number that lies outside.
Error update_outside(const Stage& stage, int64_t number, int64_t value);

}  // namespace sparkle
