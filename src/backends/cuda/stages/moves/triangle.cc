// The triangle family on CUDA: a move in chunks.
#include "families/triangle/triangle_gpu.h"

#include "backends/cuda/kernels/moves/triangle_record.h"
#include "backends/cuda/stages/moves/moves.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_triangle(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "units")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no triangle variant '" + variant_of(schedule) + "'"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  const TriangleMove triangle = triangle_move(stage);
  const ChunkMove& move = triangle.chunks;
  if (!triangle.fits_31_bits || move.axes.size() > static_cast<size_t>(kMoveAxes)) return too_far("triangle");
  TriangleRecord r;
  r.count = static_cast<uint32_t>(move.count());
  r.least = static_cast<int32_t>(triangle.least);
  r.axes = move_axes(move.axes);
  for (size_t i = 0; i < move.axes.size(); ++i) r.side[i] = static_cast<int32_t>(move.axes[i].other);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_triangle_chunks_" + std::to_string(move.bytes), r,
                                blocks_for(move.count(), kMoveThreads * kMoveSteps), kMoveThreads));
  launch.addresses = {{offsetof(TriangleRecord, x), 0, 0}, {offsetof(TriangleRecord, y), 1, 0}};
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace sparkle::cuda
