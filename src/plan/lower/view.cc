#include "plan/lower/view.h"

#include <cstdlib>

namespace sparkle {
namespace {

// The order follows from the strides: outermost is the largest, ties keep logical order; size-1 and broadcast axes go by
// position.
Dims order_of(const Dims& shape, const Dims& strides) {
  Dims order;
  for (int i = 0; i < shape.size(); ++i) order.push_back(i);
  for (int i = 1; i < order.size(); ++i)
    for (int j = i; j > 0; --j) {
      const int a = static_cast<int>(order[j - 1]), b = static_cast<int>(order[j]);
      if (shape[a] <= 1 || shape[b] <= 1 || std::abs(strides[a]) >= std::abs(strides[b])) break;
      std::swap(order[j - 1], order[j]);
    }
  return order;
}

TensorDesc described(const TensorDesc& x, const Dims& shape, const Dims& strides) {
  TensorDesc y{x.dtype, shape, x.layout};
  y.layout.strides = strides;
  y.layout.order = order_of(shape, strides);
  return y;
}

}  // namespace

// Walks both shapes from the outside, matching groups of axes of equal product; within a group x's axes must be mergeable.
std::optional<TensorDesc> reshape_view(const TensorDesc& x, const Dims& shape) {
  if (x.shape == shape) return x;
  if (x.elements() != shape.product()) return std::nullopt;
  Dims old_shape, old_stride;  // axes of size 1 carry no information
  for (int i = 0; i < x.shape.size(); ++i)
    if (x.shape[i] != 1) old_shape.push_back(x.shape[i]), old_stride.push_back(x.layout.strides[i]);
  Dims strides = Dims::filled(shape.size(), 0);
  if (x.elements() == 0) return described(x, shape, row_major(shape).strides);
  int i = 0, j = 0;
  while (i < old_shape.size() || j < shape.size()) {
    if (j < shape.size() && shape[j] == 1) {
      strides[j] = 1;  // set below to something monotonous
      ++j;
      continue;
    }
    if (i >= old_shape.size() || j >= shape.size()) return std::nullopt;
    int i_end = i + 1, j_end = j + 1;
    int64_t old_product = old_shape[i], new_product = shape[j];
    while (old_product != new_product) {
      if (old_product < new_product) {
        if (i_end >= old_shape.size()) return std::nullopt;
        old_product *= old_shape[i_end++];
      } else {
        if (j_end >= shape.size()) return std::nullopt;
        new_product *= shape[j_end++];
      }
    }
    for (int a = i; a + 1 < i_end; ++a)
      if (old_stride[a] != old_stride[a + 1] * old_shape[a + 1]) return std::nullopt;
    int64_t step = old_stride[i_end - 1];
    for (int b = j_end - 1; b >= j; --b) {
      strides[b] = step;
      step *= shape[b];
    }
    i = i_end, j = j_end;
  }
  // Axes of size 1 take the stride that a dense tensor would have there.
  for (int b = shape.size() - 1; b >= 0; --b)
    if (shape[b] == 1) strides[b] = b + 1 < shape.size() ? strides[b + 1] * shape[b + 1] : 1;
  return described(x, shape, strides);
}

TensorDesc transpose_view(const TensorDesc& x, const Dims& permutation) {
  Dims shape, strides;
  for (int64_t axis : permutation) {
    shape.push_back(x.shape[static_cast<int>(axis)]);
    strides.push_back(x.layout.strides[static_cast<int>(axis)]);
  }
  TensorDesc y = described(x, shape, strides);
  // Carry the order over exactly: size-1 axes keep their place in memory.
  for (int i = 0; i < x.layout.order.size(); ++i)
    for (int j = 0; j < permutation.size(); ++j)
      if (permutation[j] == x.layout.order[i]) y.layout.order[i] = j;
  return y;
}

TensorDesc slice_view(const TensorDesc& x, const Dims& starts, const Dims& steps, const Dims& shape) {
  TensorDesc y = x;
  y.shape = shape;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] > 0) y.layout.offset += starts[i] * x.layout.strides[i];
    // A step that is never taken may be any number, too large to multiply.
    if (shape[i] > 1) y.layout.strides[i] = x.layout.strides[i] * steps[i];
  }
  return y;
}

TensorDesc broadcast_view(const TensorDesc& x, const Dims& shape) {
  Dims strides = Dims::filled(shape.size(), 0);
  const int lead = shape.size() - x.shape.size();
  for (int i = 0; i < x.shape.size(); ++i)
    strides[lead + i] = x.shape[i] == 1 && shape[lead + i] != 1 ? 0 : x.layout.strides[i];
  TensorDesc y{x.dtype, shape, x.layout};
  y.layout.strides = strides;
  if (lead > 0) {
    Dims order;
    for (int i = 0; i < lead; ++i) order.push_back(i);
    for (int64_t axis : x.layout.order) order.push_back(axis + lead);
    y.layout.order = order;
  }
  return y;
}

TensorDesc split_axis(const TensorDesc& x, int axis, int64_t outer, int64_t inner) {
  Dims shape = x.shape, strides = x.layout.strides;
  shape[axis] = outer;
  shape.insert(axis + 1, inner);
  const int64_t step = strides[axis];
  strides[axis] = step * inner;
  strides.insert(axis + 1, step);
  return described(x, shape, strides);
}

std::optional<Layout> rehome(const TensorDesc& view, int64_t own, int64_t total, int64_t begin, int64_t inner) {
  const int64_t block = own * inner, new_block = total * inner;
  Layout layout = view.layout;
  int64_t reach = view.layout.offset % block;  // highest position inside one block
  for (int i = 0; i < view.shape.size(); ++i) {
    const int64_t stride = view.layout.strides[i];
    if (view.shape[i] <= 1) {
      if (std::abs(stride) >= block) layout.strides[i] = stride / block * new_block;
      continue;
    }
    if (stride % block == 0) {
      layout.strides[i] = stride / block * new_block;
    } else if (stride > 0 && stride < block) {
      reach += stride * (view.shape[i] - 1);
    } else {
      return std::nullopt;
    }
  }
  if (reach >= block) return std::nullopt;
  layout.offset = view.layout.offset / block * new_block + view.layout.offset % block + begin * inner;
  return layout;
}

}  // namespace sparkle
