#include "families/values/indices.h"

#include <algorithm>

#include "families/loops/walk.h"

namespace sparkle {
namespace {

// Lowest and highest of contiguous indices: one pass that vectorises.
template <class T>
bool all_inside(const std::byte* from, int64_t count, int64_t size) {
  const T* values = reinterpret_cast<const T*>(from);
  T low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) low = std::min(low, values[i]), high = std::max(high, values[i]);
  return low >= -size && high < size;
}

}  // namespace

Error index_outside(int64_t index, const Dims& at, int axis, int64_t size) {
  return {Reason::bad_input, "index " + std::to_string(index) + " at " + (at.empty() ? "its only place" : at.to_string()) +
                                 " lies outside of axis " + std::to_string(axis) + " of size " + std::to_string(size)};
}

int64_t clamped_index(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size - 1);
}

Status check_indices(const TensorView& indices, int64_t size, int axis) {
  const TensorDesc& desc = indices.desc;
  const int64_t count = desc.elements();
  if (count == 0) return ok();
  if (is_dense(desc.shape, desc.layout)) {
    const std::byte* from = indices.data + desc.layout.offset * size_of(desc.dtype);
    if (desc.dtype == DType::i64 ? all_inside<int64_t>(from, count, size) : all_inside<int32_t>(from, count, size)) return ok();
  }
  Status status = ok();
  for_each_index(desc.shape, [&](const Dims& at) {
    const int64_t index = load_index(desc.dtype, element_at(indices, at));
    if (status.ok() && (index < -size || index >= size)) status = index_outside(index, at, axis, size);
  });
  return status;
}

Status check_tuples(const TensorView& indices, const Dims& x, int first) {
  const int last = indices.desc.shape.size() - 1;
  Status status = ok();
  for_each_index(indices.desc.shape, [&](const Dims& at) {
    const int axis = first + static_cast<int>(at[last]);
    const int64_t index = load_index(indices.desc.dtype, element_at(indices, at)), size = x[axis];
    if (status.ok() && (index < -size || index >= size)) status = index_outside(index, at, axis, size);
  });
  return status;
}

}  // namespace sparkle
