// The gather family on Vulkan: families/gather/picking.h, a chunk a thread and step. Indices that lie outside are reported.
#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/gather/picking.h"
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

}  // namespace

Result<VulkanKernelPtr> make_gather(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "units")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no gather variant '" + variant_of(schedule) + "'"};
  const TensorDesc& indices = stage.inputs[1];
  if (!is_index_type(indices.dtype)) return Error{Reason::type_not_served, "indices are i32 or i64"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (indices.elements() == 0) return kernel;
  const Picking k = picking_of(stage);
  if (!k.fits_31_bits) return too_far("gather");
  const ChunkMove& move = k.move;
  GatherRecord r{};
  for (size_t i = 0; i < k.picked.size(); ++i) {
    r.picked_size[i] = static_cast<int32_t>(k.picked[i].size);
    r.picked_strides[i] = static_cast<int32_t>(k.picked[i].x);
  }
  r.count = static_cast<uint32_t>(move.count());
  r.rank = static_cast<int32_t>(move.axes.size());
  r.first_x = static_cast<int32_t>(-k.lowest_x);
  r.first_y = static_cast<int32_t>(-move.lowest_y());
  r.first_index = static_cast<int32_t>(-k.lowest_index);
  r.picked = static_cast<int32_t>(k.picked.size());
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
  d.addresses = {{0, k.lowest_x * move.bytes},
                 {1, k.lowest_index * size_of(indices.dtype)},
                 {2, move.lowest_y() * move.bytes},
                 {kBoundsReports, 0}};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  kernel->bounds_error = [stage](int64_t number, int64_t value) { return picked_outside(stage, number, value); };
  return kernel;
}

}  // namespace sparkle::vulkan
