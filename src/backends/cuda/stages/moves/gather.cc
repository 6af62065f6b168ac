// The gather family on CUDA: families/gather/picking.h, a chunk a thread and step. Indices that lie outside are reported.
#include "backends/cuda/kernels/moves/gather_record.h"
#include "backends/cuda/stages/moves/moves.h"
#include "families/gather/picking.h"
#include "families/values/indices.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_gather(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "units")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no gather variant '" + variant_of(schedule) + "'"};
  const TensorDesc& indices = stage.inputs[1];
  if (!is_index_type(indices.dtype)) return Error{Reason::type_not_served, "indices are i32 or i64"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (indices.elements() == 0) return kernel;
  const Picking k = picking_of(stage);
  if (!k.fits_31_bits || k.move.axes.size() > static_cast<size_t>(kMoveAxes)) return too_far("gather");
  GatherRecord r;
  r.count = static_cast<uint32_t>(k.move.count());
  r.axes = move_axes(k.move.axes);
  for (size_t i = 0; i < k.move.axes.size(); ++i) {
    r.index[i] = static_cast<int32_t>(k.move.axes[i].other);
    r.order[i] = static_cast<int32_t>(k.move.axes[i].order);
  }
  r.picked = static_cast<int32_t>(k.picked.size());
  r.tuple_stride = static_cast<int32_t>(k.tuple_stride);
  for (size_t i = 0; i < k.picked.size(); ++i) {
    r.picked_size[i] = static_cast<int32_t>(k.picked[i].size);
    r.picked_strides[i] = static_cast<int32_t>(k.picked[i].x);
  }
  r.is_long = indices.dtype == DType::i64;
  r.moves = k.moves;
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_gather_chunks_" + std::to_string(k.move.bytes), r,
                                blocks_for(k.move.count(), kMoveThreads * kMoveSteps), kMoveThreads));
  launch.addresses = {{offsetof(GatherRecord, x), 0, 0},
                      {offsetof(GatherRecord, indices), 1, 0},
                      {offsetof(GatherRecord, y), 2, 0},
                      {offsetof(GatherRecord, report), kReport, 0}};
  kernel->launches.push_back(std::move(launch));
  kernel->bounds_error = [stage](int64_t number, int64_t value) { return picked_outside(stage, number, value); };
  return kernel;
}

}  // namespace sparkle::cuda
