#include "families/loops/row_groups.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace sparkle {
namespace {

int64_t power_of_two(int64_t least, int64_t most) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(least, 1, most))));
}

}  // namespace

RowGroups row_groups(const TensorDesc& x, uint32_t within, bool parts) {
  RowGroups r;
  int64_t nearest[2] = {INT64_MAX, INT64_MAX};  // strides of the rows, and of the elements of one
  for (int i = 0; i < x.shape.size(); ++i) {
    const bool inside = within >> i & 1;
    (inside ? r.elements : r.rows) *= x.shape[i];
    if (x.shape[i] != 1) nearest[inside] = std::min(nearest[inside], std::abs(int64_t{x.layout.strides[i]}));
  }
  // Neighbouring threads read neighbouring elements: along rows, or across them with at least 32 to a line.
  r.lanes_first = nearest[0] < nearest[1];
  r.depth = power_of_two(r.elements, r.lanes_first ? kRowThreads / power_of_two(r.rows, 32) : kRowThreads);
  r.lanes = kRowThreads / r.depth;
  r.groups = (r.rows + r.lanes - 1) / r.lanes;
  // A few rows do not fill a device: parts of at least 16 elements a thread.
  constexpr int64_t kEnoughGroups = 256, kLeastPerThread = 16;
  int64_t wanted = 1;
  if (parts) wanted = std::min(kEnoughGroups / std::max<int64_t>(1, r.groups), r.elements / (r.depth * kLeastPerThread));
  wanted = std::max<int64_t>(1, wanted);
  r.part_length = (r.elements + wanted - 1) / wanted;
  r.parts = r.part_length ? (r.elements + r.part_length - 1) / r.part_length : 1;
  return r;
}

}  // namespace sparkle
