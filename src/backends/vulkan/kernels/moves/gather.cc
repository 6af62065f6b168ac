// The gather family on Vulkan. All three forms are one move: each axis of y moves along x, along the indices, or both, and the
// indices found there move along the axes of x that they point into. Those that lie outside are reported.
#include <algorithm>

#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/gather/gather.h"
#include "families/values/indices.h"

namespace sparkle::vulkan {
namespace {

// As in glsl/gather_chunks.comp.
struct GatherRecord {
  uint32_t count;
  int32_t rank, first_x, first_y, first_index;
  int32_t picked, tuple_stride;
  ChunkAxes axes;
  int32_t index[kMaxRank], order[kMaxRank];
  int32_t picked_size[kMaxRank], picked_strides[kMaxRank];
};

struct Picking {
  std::vector<ChunkAxis> axes;  // of y; bytes, and indices
  std::vector<int> picked;      // axes of x that indices point into
  int64_t tuple_stride = 0;
  bool moves = true;
};

// Row-major strides of the indices.
Dims order_of(const TensorDesc& indices) { return row_major(indices.shape).strides; }

Picking picking_of(const Stage& stage) {
  const auto& p = get<GatherParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1], &y = stage.outputs[0];
  const int64_t element = size_of(y.dtype);
  const int index_rank = indices.shape.size();
  const Dims order = order_of(indices);
  Picking k;
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
    k.axes.push_back({y.shape[i], along < 0 ? 0 : x.layout.strides[along] * element, y.layout.strides[i] * element,
                      index < 0 ? 0 : indices.layout.strides[index], -1, index < 0 ? 0 : order[index]});
  }
  // Where x or y is empty nothing moves; the indices are looked at all the same.
  if (x.elements() == 0 || y.elements() == 0) {
    k.moves = false;
    k.axes.clear();
    for (int i = 0; i < index_rank - (p.form == GatherForm::tuples); ++i)
      k.axes.push_back({indices.shape[i], 0, 0, indices.layout.strides[i], -1, order[i]});
  }
  if (p.form == GatherForm::tuples) {
    k.tuple_stride = indices.layout.strides[index_rank - 1];
    for (int i = 0; i < indices.shape[index_rank - 1]; ++i) k.picked.push_back(p.batch_axes + i);
  } else {
    k.picked.push_back(p.axis);
  }
  return k;
}

// What the CPU says of the same index.
Error outside(const Stage& stage, int64_t number, int64_t value) {
  const auto& p = get<GatherParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1];
  const Dims order = order_of(indices);
  Dims at;
  for (int i = 0; i < indices.shape.size(); ++i) at.push_back(number / order[i] % indices.shape[i]);
  const int axis = p.form == GatherForm::tuples ? p.batch_axes + static_cast<int>(at[at.size() - 1]) : p.axis;
  return index_outside(value, at, axis, x.shape[axis]);
}

}  // namespace

Result<VulkanKernelPtr> make_gather(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "units")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no gather variant '" + variant_of(schedule) + "'"};
  const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1], &y = stage.outputs[0];
  if (!is_index_type(indices.dtype)) return Error{Reason::type_not_served, "indices are i32 or i64"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (indices.elements() == 0) return kernel;
  const int64_t element = size_of(y.dtype);
  Picking k = picking_of(stage);
  // Chunks hold together along the picked axes too: these are axes of the move of which y has none.
  const size_t own = k.axes.size();
  for (const int axis : k.picked)
    k.axes.push_back({x.shape[axis], x.layout.strides[axis] * element, 0, 0, static_cast<int>(own), 0});
  ChunkMove move = chunk_move(std::move(k.axes), element, x.layout.offset * element, y.layout.offset * element);
  GatherRecord r{};
  int64_t lowest_x = move.lowest_x(), lowest_index = 0;
  std::vector<ChunkAxis> picked;
  std::erase_if(move.axes, [&](const ChunkAxis& a) {
    if (a.axis >= 0) picked.push_back(a);
    return a.axis >= 0;
  });
  for (size_t i = 0; i < picked.size(); ++i) {
    r.picked_size[i] = static_cast<int32_t>(picked[i].size);
    r.picked_strides[i] = static_cast<int32_t>(picked[i].x);
  }
  for (const ChunkAxis& a : move.axes) lowest_index += std::min<int64_t>(0, (a.size - 1) * a.other);
  lowest_index += std::min<int64_t>(0, (static_cast<int64_t>(picked.size()) - 1) * k.tuple_stride);
  if (!move.fits_31_bits() || extent(x.shape, x.layout) > INT32_MAX || extent(indices.shape, indices.layout) > INT32_MAX / 2 ||
      indices.elements() > INT32_MAX)
    return too_far("gather");
  r.count = static_cast<uint32_t>(move.count());
  r.rank = static_cast<int32_t>(move.axes.size());
  r.first_x = static_cast<int32_t>(-lowest_x);
  r.first_y = static_cast<int32_t>(-move.lowest_y());
  r.first_index = static_cast<int32_t>(-lowest_index);
  r.picked = static_cast<int32_t>(picked.size());
  r.tuple_stride = static_cast<int32_t>(k.tuple_stride);
  r.axes = chunk_axes(move.axes);
  for (size_t i = 0; i < move.axes.size(); ++i) {
    r.index[i] = static_cast<int32_t>(move.axes[i].other);
    r.order[i] = static_cast<int32_t>(move.axes[i].order);
  }
  const uint32_t is_long = indices.dtype == DType::i64;
  SPARKLE_TRY(pipeline, chunk_pipeline(shop, "gather_chunks", move.bytes, kChunkThreads, {is_long, k.moves}));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_for_chunks(move.count());
  d.addresses = {{0, lowest_x * move.bytes},
                 {1, lowest_index * size_of(indices.dtype)},
                 {2, move.lowest_y() * move.bytes},
                 {kBoundsReports, 0}};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  kernel->bounds_error = [stage](int64_t number, int64_t value) { return outside(stage, number, value); };
  return kernel;
}

}  // namespace sparkle::vulkan
