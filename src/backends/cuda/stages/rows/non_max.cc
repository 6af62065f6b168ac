// The non_max family on CUDA: each class of each image picks its boxes, then rows are laid one behind the other.
#include "families/non_max/non_max.h"

#include <algorithm>

#include "backends/cuda/kernels/rows/non_max_record.h"
#include "backends/cuda/stages/moves/moves.h"
#include "families/non_max/non_max_gpu.h"

namespace sparkle::cuda {

static_assert(kNonMaxBlock == kNonMaxThreads);

Result<CudaKernelPtr> make_non_max(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "groups")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no non_max variant '" + variant_of(schedule) + "'"};
  const auto& p = get<NonMaxParams>(stage.params);
  const TensorDesc &boxes = stage.inputs[0], &scores = stage.inputs[1], &rows = stage.outputs[0];
  for (const TensorDesc* d : {&boxes, &scores})
    if (d->dtype != DType::f32)
      return Error{Reason::type_not_served, "the CUDA non_max kernels take boxes and scores of f32, not " +
                                                std::string(name_of(d->dtype)) + "; use --device cpu"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (rows.elements() == 0) return kernel;
  const NonMaxOffsets offsets = non_max_offsets(stage);
  for (const TensorDesc* d : {&boxes, &scores, &rows})
    if (extent(d->shape, d->layout) > INT32_MAX) return too_far("non_max");
  if (offsets.end > INT32_MAX) return too_far("non_max");
  NonMaxRecord r;
  r.tasks = static_cast<uint32_t>(offsets.tasks), r.classes = static_cast<uint32_t>(std::max<int64_t>(1, scores.shape[1]));
  r.count = static_cast<uint32_t>(scores.shape[2]), r.most = static_cast<uint32_t>(offsets.most);
  r.row_count = static_cast<uint32_t>(rows.shape[0]), r.words = static_cast<uint32_t>(offsets.words);
  r.kept = static_cast<uint32_t>(offsets.kept), r.out = static_cast<uint32_t>(offsets.out);
  r.overlap = static_cast<float>(p.overlap), r.threshold = static_cast<float>(p.threshold);
  r.centers = p.centers, r.has_threshold = p.has_threshold;
  const auto put_strides = [](const TensorDesc& desc, int32_t* to) {
    for (int i = 0; i < desc.shape.size(); ++i) to[i] = static_cast<int32_t>(desc.layout.strides[i]);
  };
  put_strides(boxes, r.box), put_strides(scores, r.score), put_strides(rows, r.row);
  kernel->workspace = 4 * offsets.end;
  const auto add = [&](const char* name, int64_t blocks, int64_t shared_bytes) -> Status {
    SPARKLE_TRY(launch, launch_of(shop, name, r, blocks_for(blocks, 1), kNonMaxBlock, shared_bytes));
    launch.addresses = {{offsetof(NonMaxRecord, boxes), 0, 0},
                        {offsetof(NonMaxRecord, scores), 1, 0},
                        {offsetof(NonMaxRecord, rows), 2, 0},
                        {offsetof(NonMaxRecord, work), kWorkspace, 0}};
    kernel->launches.push_back(std::move(launch));
    return ok();
  };
  // Of both places in turn a word and a score for each warp; a sum for each thread.
  if (offsets.tasks > 0) SPARKLE_CHECK(add("sparkle_non_max_pick", offsets.tasks, 2 * 8 * kNonMaxBlock / 32));
  SPARKLE_CHECK(add("sparkle_non_max_starts", 1, 4 * kNonMaxBlock));
  SPARKLE_CHECK(
      add("sparkle_non_max_rows", divided(std::max(offsets.tasks * offsets.most, rows.shape[0]), int64_t{kNonMaxBlock}), 0));
  return kernel;
}

}  // namespace sparkle::cuda
