// Views: what reshaping, transposing, slicing and expanding do to a layout when no element needs to move.
#pragma once

#include <optional>

#include "base/tensor.h"

namespace sparkle {

// The same elements in logical order under another shape, or nothing where that takes a copy.
std::optional<TensorDesc> reshape_view(const TensorDesc& x, const Dims& shape);
// Axis i of the result is axis permutation[i] of x.
TensorDesc transpose_view(const TensorDesc& x, const Dims& permutation);
// starts and steps per axis; sizes are the result's shape.
TensorDesc slice_view(const TensorDesc& x, const Dims& starts, const Dims& steps, const Dims& shape);
// numpy broadcasting of x to `shape` (a higher or equal rank): stride 0 along expanded axes.
TensorDesc broadcast_view(const TensorDesc& x, const Dims& shape);
// Axis `axis` of size a*b becomes two axes a, b.
TensorDesc split_axis(const TensorDesc& x, int axis, int64_t outer, int64_t inner);

// The same elements inside a larger dense buffer whose axis (by `order`) has `total` instead of `own` and starts at `begin`:
// `inner` elements lie inside one step of that axis. Nothing where the view crosses the axis' boundary.
std::optional<Layout> rehome(const TensorDesc& view, int64_t own, int64_t total, int64_t begin, int64_t inner);

}  // namespace sparkle
