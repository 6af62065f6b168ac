#include "families/gather/picking.h"

#include <algorithm>

#include "families/gather/gather.h"
#include "families/values/indices.h"

namespace sparkle {
namespace {

// Row-major strides of the indices.
Dims order_of(const TensorDesc& indices) { return row_major(indices.shape).strides; }

// Axes of y, or of the indices where nothing moves; strides of x and y in bytes.
std::vector<ChunkAxis> axes_of(const Stage& stage, bool moves) {
  const auto& p = get<GatherParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1], &y = stage.outputs[0];
  const int64_t element = size_of(y.dtype);
  const int index_rank = indices.shape.size();
  const Dims order = order_of(indices);
  std::vector<ChunkAxis> axes;
  if (!moves) {
    for (int i = 0; i < index_rank - (p.form == GatherForm::tuples); ++i)
      axes.push_back({indices.shape[i], 0, 0, indices.layout.strides[i], -1, order[i]});
    return axes;
  }
  for (int i = 0; i < y.shape.size(); ++i) {
    int along = -1, index = -1;  // axes of x and of the indices that go with y's
    switch (p.form) {
      case GatherForm::elements:
        along = i == p.axis ? -1 : i;
        index = i;
        break;
      case GatherForm::slices:
        if (i < p.axis) along = i;
        else if (i < p.axis + index_rank) index = i - p.axis;
        else along = i - index_rank + 1;
        break;
      case GatherForm::tuples:
        if (i < index_rank - 1) {
          index = i;
          along = i < p.batch_axes ? i : -1;
        } else {
          along = p.batch_axes + static_cast<int>(indices.shape[index_rank - 1]) + i - (index_rank - 1);
        }
        break;
    }
    axes.push_back({y.shape[i], along < 0 ? 0 : x.layout.strides[along] * element, y.layout.strides[i] * element,
                    index < 0 ? 0 : indices.layout.strides[index], -1, index < 0 ? 0 : order[index]});
  }
  return axes;
}

}  // namespace

Picking picking_of(const Stage& stage) {
  const auto& p = get<GatherParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1], &y = stage.outputs[0];
  const int64_t element = size_of(y.dtype);
  Picking k;
  k.moves = x.elements() > 0 && y.elements() > 0;
  std::vector<ChunkAxis> axes = axes_of(stage, k.moves);
  std::vector<int> picked{p.axis};
  if (p.form == GatherForm::tuples) {
    picked.clear();
    const int last = indices.shape.size() - 1;
    k.tuple_stride = indices.layout.strides[last];
    for (int i = 0; i < indices.shape[last]; ++i) picked.push_back(p.batch_axes + i);
  }
  // Chunks hold together along the picked axes too: these are axes of the move of which y has none.
  const auto own = static_cast<int>(axes.size());
  for (const int axis : picked) axes.push_back({x.shape[axis], x.layout.strides[axis] * element, 0, 0, own, 0});
  k.move = chunk_move(std::move(axes), element, x.layout.offset * element, y.layout.offset * element);
  k.fits_31_bits = k.move.fits_31_bits() && extent(x.shape, x.layout) <= INT32_MAX &&
                   extent(indices.shape, indices.layout) <= INT32_MAX / 2 && indices.elements() <= INT32_MAX;
  k.lowest_x = k.move.lowest_x();
  std::erase_if(k.move.axes, [&](const ChunkAxis& a) {
    if (a.axis >= 0) k.picked.push_back(a);
    return a.axis >= 0;
  });
  for (const ChunkAxis& a : k.move.axes) k.lowest_index += std::min<int64_t>(0, (a.size - 1) * a.other);
  k.lowest_index += std::min<int64_t>(0, (static_cast<int64_t>(k.picked.size()) - 1) * k.tuple_stride);
  return k;
}

Error picked_outside(const Stage& stage, int64_t number, int64_t value) {
  const auto& p = get<GatherParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1];
  const Dims order = order_of(indices);
  Dims at;
  for (int i = 0; i < indices.shape.size(); ++i) at.push_back(number / order[i] % indices.shape[i]);
  const int axis = p.form == GatherForm::tuples ? p.batch_axes + static_cast<int>(at[at.size() - 1]) : p.axis;
  return index_outside(value, at, axis, x.shape[axis]);
}

}  // namespace sparkle
