// Walks over every index of a shape, for plain loops and tests; speed does not matter here.
#pragma once

#include "base/tensor.h"

namespace sparkle {

// f(index) for each index of the shape, last axis fastest; f(empty) once for a scalar, nothing where an axis is empty.
template <class F>
void for_each_index(const Dims& shape, F&& f) {
  if (shape.product() == 0) return;
  Dims index = Dims::filled(shape.size(), 0);
  for (;;) {
    f(static_cast<const Dims&>(index));
    int axis = shape.size() - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

// Byte address of one element.
inline std::byte* element_at(const TensorView& view, const Dims& index) {
  int64_t at = view.desc.layout.offset;
  for (int i = 0; i < index.size(); ++i) at += index[i] * view.desc.layout.strides[i];
  return view.data + at * size_of(view.desc.dtype);
}

}  // namespace sparkle
