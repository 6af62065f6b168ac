// The triangle family on Vulkan: a move in chunks.
#include "families/triangle/triangle_gpu.h"

#include "backends/vulkan/kernels/moves/chunks.h"

namespace sparkle::vulkan {
namespace {

// As in glsl/triangle_chunks.comp.
struct TriangleRecord {
  uint32_t count;
  int32_t rank, first_x, first_y, least;
  ChunkAxes axes;
  int32_t side[kMaxRank];
};

}  // namespace

Result<VulkanKernelPtr> make_triangle(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "units")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no triangle variant '" + variant_of(schedule) + "'"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  const TriangleMove triangle = triangle_move(stage);
  const ChunkMove& move = triangle.chunks;
  if (!triangle.fits_31_bits) return too_far("triangle");
  TriangleRecord r{};
  r.count = static_cast<uint32_t>(move.count());
  r.rank = static_cast<int32_t>(move.axes.size());
  r.first_x = static_cast<int32_t>(-move.lowest_x());
  r.first_y = static_cast<int32_t>(-move.lowest_y());
  r.least = static_cast<int32_t>(triangle.least);
  r.axes = chunk_axes(move.axes);
  for (size_t i = 0; i < move.axes.size(); ++i) r.side[i] = static_cast<int32_t>(move.axes[i].other);
  SPARKLE_TRY(pipeline, chunk_pipeline(shop, "triangle_chunks", move.bytes, kChunkThreads));
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_for_chunks(move.count());
  d.addresses = {{0, move.lowest_x() * move.bytes}, {1, move.lowest_y() * move.bytes}};
  d.push(record->address());
  kernel->dispatches.push_back(std::move(d));
  kernel->records.push_back(std::move(record));
  return kernel;
}

}  // namespace sparkle::vulkan
