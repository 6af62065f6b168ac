// The copy family on CUDA: chunks of up to 16 bytes between any two layouts, or transpositions in tiles.
#include "backends/cuda/stages/moves/moves.h"

namespace sparkle::cuda {
namespace {

Result<KernelLaunch> chunks(const ChunkMove& move, const Workshop& shop) {
  CopyRecord r;
  r.count = static_cast<uint32_t>(move.count());
  r.axes = move_axes(move.axes);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_copy_chunks_" + std::to_string(move.bytes), r,
                                blocks_for(move.count(), kMoveThreads * kMoveSteps), kMoveThreads));
  launch.addresses = {{offsetof(CopyRecord, x), 0, 0}, {offsetof(CopyRecord, y), 1, 0}};
  return launch;
}

Result<KernelLaunch> tiles(const ChunkMove& move, const Workshop& shop) {
  const Transposition t = transposition(move);
  if (!t.found() || move.bytes > 8)
    return Error{Reason::layout_not_served, "the copy is no transposition of single elements; use the variant units"};
  const ChunkAxis a = move.axes[static_cast<size_t>(t.a)], b = move.axes[static_cast<size_t>(t.b)];
  std::vector<ChunkAxis> outer;
  for (size_t i = 0; i < move.axes.size(); ++i)
    if (static_cast<int>(i) != t.a && static_cast<int>(i) != t.b) outer.push_back(move.axes[i]);
  TransposeRecord r;
  r.size_a = static_cast<int32_t>(a.size), r.size_b = static_cast<int32_t>(b.size);
  r.stride_y = static_cast<int32_t>(a.y), r.stride_x = static_cast<int32_t>(b.x);
  const int64_t tiles_a = divided(a.size, kTransposeTile), tiles_b = divided(b.size, kTransposeTile);
  r.tiles_a = divisor_of(tiles_a), r.tiles_b = divisor_of(tiles_b);
  r.axes = move_axes(outer);
  constexpr int64_t kPlane = 4 * kTransposeTile * (kTransposeTile + 1);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_copy_transpose_" + std::to_string(move.bytes), r,
                                blocks_for(move.count() / (a.size * b.size) * tiles_a * tiles_b, 1), kTransposeThreads,
                                move.bytes == 8 ? 2 * kPlane : kPlane));
  launch.addresses = {{offsetof(TransposeRecord, x), 0, 0}, {offsetof(TransposeRecord, y), 1, 0}};
  return launch;
}

}  // namespace

Result<CudaKernelPtr> make_copy(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  const std::string& variant = variant_of(schedule);
  if (variant != "units" && variant != "transpose")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no copy variant '" + variant + "'"};
  if (x.shape != y.shape || x.dtype != y.dtype)
    return Error{Reason::bad_shape,
                 "A copy needs one shape and one type, not " + x.shape.to_string() + " and " + y.shape.to_string() + "."};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (y.elements() == 0) return kernel;
  const ChunkMove move = chunk_move(x, y);
  if (!move.fits_31_bits()) return too_far("copy");
  SPARKLE_TRY(launch, variant == "units" ? chunks(move, shop) : tiles(move, shop));
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
