// The copy family on Vulkan: chunks of up to 16 bytes between any two layouts, or transpositions in tiles.
#include "backends/vulkan/kernels/moves/chunks.h"

namespace sparkle::vulkan {
namespace {

// As in glsl/copy_chunks.comp.
struct CopyRecord {
  uint32_t count;
  int32_t rank, first_x, first_y;
  ChunkAxes axes;
};

// As in glsl/copy_transpose.comp.
struct TransposeRecord {
  int32_t size_a, size_b, stride_y, stride_x;
  int32_t rank, first_x, first_y;
  ChunkAxes axes;
};
constexpr int64_t kTile = 32;
constexpr int kTileThreads = 256;

Status make_chunks(const ChunkMove& move, Dispatch& d, VulkanKernel& kernel, const Workshop& shop) {
  SPARKLE_TRY(pipeline, chunk_pipeline(shop, "copy_chunks", move.bytes, kChunkThreads));
  const CopyRecord r{static_cast<uint32_t>(move.count()), static_cast<int32_t>(move.axes.size()),
                     static_cast<int32_t>(-move.lowest_x()), static_cast<int32_t>(-move.lowest_y()), chunk_axes(move.axes)};
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  d.pipeline = pipeline;
  d.groups = groups_for_chunks(move.count());
  d.push(record->address());
  kernel.records.push_back(std::move(record));
  return ok();
}

Status make_transposition(const ChunkMove& move, Dispatch& d, VulkanKernel& kernel, const Workshop& shop) {
  const Transposition t = transposition(move);
  if (!t.found() || move.bytes > 8)
    return Error{Reason::layout_not_served, "the copy is no transposition of single elements; use the variant units"};
  SPARKLE_TRY(pipeline, chunk_pipeline(shop, "copy_transpose", move.bytes, kTileThreads));
  const ChunkAxis a = move.axes[static_cast<size_t>(t.a)], b = move.axes[static_cast<size_t>(t.b)];
  std::vector<ChunkAxis> outer;
  for (size_t i = 0; i < move.axes.size(); ++i)
    if (static_cast<int>(i) != t.a && static_cast<int>(i) != t.b) outer.push_back(move.axes[i]);
  const TransposeRecord r{static_cast<int32_t>(a.size),
                          static_cast<int32_t>(b.size),
                          static_cast<int32_t>(a.y),
                          static_cast<int32_t>(b.x),
                          static_cast<int32_t>(outer.size()),
                          static_cast<int32_t>(-move.lowest_x()),
                          static_cast<int32_t>(-move.lowest_y()),
                          chunk_axes(outer)};
  SPARKLE_TRY(record, shop.upload(&r, sizeof r));
  const int64_t tiles_a = (a.size + kTile - 1) / kTile, tiles_b = (b.size + kTile - 1) / kTile;
  const int64_t tiles = move.count() / (a.size * b.size) * tiles_a * tiles_b;
  d.pipeline = pipeline;
  d.groups = flat_groups(tiles);
  d.push(record->address());
  d.push(divisor(tiles_a));
  d.push(divisor(tiles_b));
  d.push(static_cast<uint32_t>(tiles));
  kernel.records.push_back(std::move(record));
  return ok();
}

}  // namespace

Result<VulkanKernelPtr> make_copy(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  const std::string& variant = variant_of(schedule);
  if (variant != "units" && variant != "transpose")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no copy variant '" + variant + "'"};
  if (x.shape != y.shape || x.dtype != y.dtype)
    return Error{Reason::bad_shape,
                 "A copy needs one shape and one type, not " + x.shape.to_string() + " and " + y.shape.to_string() + "."};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  const ChunkMove move = chunk_move(x, y);
  if (!move.fits_31_bits()) return too_far("copy");
  Dispatch d;
  d.addresses = {{0, move.lowest_x() * move.bytes}, {1, move.lowest_y() * move.bytes}};
  SPARKLE_CHECK(variant == "units" ? make_chunks(move, d, *kernel, shop) : make_transposition(move, d, *kernel, shop));
  kernel->dispatches.push_back(std::move(d));
  return kernel;
}

}  // namespace sparkle::vulkan
