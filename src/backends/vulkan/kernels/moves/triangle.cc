// The triangle family on Vulkan: a move in chunks. Along columns it steps towards the upper triangle, along rows away from it.
#include "families/triangle/triangle.h"

#include <algorithm>

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
  const auto& p = get<TriangleParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  const int64_t element = size_of(y.dtype), up = p.upper ? 1 : -1;
  const int rank = y.shape.size();
  std::vector<ChunkAxis> axes;
  for (int i = 0; i < rank; ++i)
    axes.push_back({y.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element,
                    i == rank - 1   ? up
                    : i == rank - 2 ? -up
                                    : 0});
  const ChunkMove move = chunk_move(std::move(axes), element, x.layout.offset * element, y.layout.offset * element);
  if (!move.fits_31_bits() || extent(x.shape, x.layout) > INT32_MAX) return too_far("triangle");
  // The diagonal may be any 64-bit number; the matrix' ends are as far as it reaches.
  const int64_t reach = std::min<int64_t>(INT32_MAX, y.shape[rank - 2] + y.shape[rank - 1]);
  TriangleRecord r{};
  r.count = static_cast<uint32_t>(move.count());
  r.rank = static_cast<int32_t>(move.axes.size());
  r.first_x = static_cast<int32_t>(-move.lowest_x());
  r.first_y = static_cast<int32_t>(-move.lowest_y());
  r.least = static_cast<int32_t>(up * std::clamp(p.diagonal, -reach, reach));
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
