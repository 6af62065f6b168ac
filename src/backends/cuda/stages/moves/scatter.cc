// The scatter family on CUDA: y is copied from the data, then updates follow. With a reduction a thread takes those that may
// meet, one after the other, so that results are the same on every run; without one the last of them is found by claims.
#include "families/scatter/scatter.h"

#include "backends/cuda/kernels/moves/scatter_record.h"
#include "backends/cuda/stages/moves/moves.h"
#include "backends/cuda/stages/moves/one_hot.h"
#include "families/copy/copy.h"
#include "families/scatter/scatter_gpu.h"
#include "families/scatter/scatter_updates.h"
#include "families/type_set.h"

namespace sparkle::cuda {
namespace {

Result<ScatterRecord> record_of(const Stage& stage, const ScatterUpdates& updates) {
  ScatterRecord r;
  if (updates.serial.size() + updates.parallel.size() > static_cast<size_t>(kMoveAxes)) return too_far("scatter");
  for (const auto* axes : {&updates.serial, &updates.parallel})
    for (const ScatterUpdates::Axis& a : *axes) {
      (axes == &updates.serial ? r.serial : r.parallel) *= static_cast<uint32_t>(a.size);
      r.size[r.rank] = divisor_of(a.size);
      r.update[r.rank] = static_cast<int32_t>(a.update), r.to[r.rank] = static_cast<int32_t>(a.y);
      r.index[r.rank] = static_cast<int32_t>(a.index), r.order[r.rank] = static_cast<int32_t>(a.order);
      r.slot[r.rank++] = static_cast<int32_t>(a.slot);
    }
  r.serial_rank = static_cast<int32_t>(updates.serial.size());
  for (const ScatterUpdates::Picked& p : updates.picked) {
    r.picked_size[r.picked] = static_cast<int32_t>(p.size);
    r.picked_to[r.picked] = static_cast<int32_t>(p.y), r.picked_slot[r.picked++] = static_cast<int32_t>(p.slot);
  }
  r.tuple_stride = static_cast<int32_t>(updates.tuple_stride);
  r.is_long = stage.inputs[1].dtype == DType::i64;
  r.type = static_cast<uint8_t>(stage.outputs[0].dtype);
  r.reduction = static_cast<uint8_t>(get<ScatterParams>(stage.params).reduction);
  return r;
}

// Appends a launch of the kernel over these updates: a thread each, or one for those that may meet.
Status add(CudaKernel& kernel, const Workshop& shop, const std::string& name, const ScatterUpdates& updates, bool by_rows) {
  SPARKLE_TRY(r, record_of(kernel.stage, updates));
  const int64_t threads = by_rows ? r.parallel : int64_t{r.parallel} * r.serial;
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_scatter_" + name, r, blocks_for(threads, kScatterThreads), kScatterThreads));
  launch.addresses = {{offsetof(ScatterRecord, indices), 1, 0},
                      {offsetof(ScatterRecord, updates), 2, 0},
                      {offsetof(ScatterRecord, y), 3, 0},
                      {offsetof(ScatterRecord, report), kReport, 0}};
  if (kernel.workspace > 0) launch.addresses.push_back({offsetof(ScatterRecord, claims), kWorkspace, 0});
  kernel.launches.push_back(std::move(launch));
  return ok();
}

Status add_copy(CudaKernel& kernel, const Workshop& shop) {
  const Stage copy{CopyParams{}, {kernel.stage.inputs[0]}, {kernel.stage.outputs[0]}};
  SPARKLE_TRY(made, make_copy(copy, LoopSchedule{"units", "", 0}, shop, 0));
  for (KernelLaunch& launch : made->launches) {
    for (KernelLaunch::Address& address : launch.addresses)
      if (address.operand == 1) address.operand = 3;  // y, behind three inputs
    kernel.launches.push_back(std::move(launch));
  }
  return ok();
}

std::string walk_of(const Stage& stage) {
  const DType type = stage.outputs[0].dtype;
  return std::string("walk_") + (type == DType::f64          ? "f64"
                                 : is_float(type)            ? "f32"
                                 : kSignedIntegers.has(type) ? "i64"
                                                             : "u64");
}

Status add_all(CudaKernel& kernel, const Workshop& shop) {
  const Stage& stage = kernel.stage;
  const TensorDesc &indices = stage.inputs[1], &y = stage.outputs[0];
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > INT32_MAX || d.elements() > INT32_MAX) return too_far("scatter");
  const ScatterUpdates updates = scatter_updates(stage), alone = without_slices(updates, stage);
  if (indices.elements() > 0)
    kernel.bounds_error = [stage](int64_t number, int64_t value) { return update_outside(stage, number, value); };
  if (y.elements() == 0) return indices.elements() > 0 ? add(kernel, shop, "look", alone, false) : ok();
  SPARKLE_CHECK(add_copy(kernel, shop));
  const ScatterShares shares = scatter_shares(stage);
  if (shares.parallel * shares.serial == 0) return ok();
  const bool combines = get<ScatterParams>(stage.params).reduction != ScatterReduction::none;
  const std::string bytes = std::to_string(size_of(y.dtype));
  if (!shares.claims) return add(kernel, shop, combines ? walk_of(stage) : "put_" + bytes, updates, combines);
  kernel.workspace = 4 * shares.slots;
  ScatterUpdates slots;
  slots.parallel = {{shares.slots}};
  SPARKLE_CHECK(add(kernel, shop, "clear", slots, false));
  kernel.launches.back().after_previous = false;
  SPARKLE_CHECK(add(kernel, shop, "claim", alone, false));
  return add(kernel, shop, "last_" + bytes, updates, false);
}

}  // namespace

Result<CudaKernelPtr> make_scatter(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "updates")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no scatter variant '" + variant_of(schedule) + "'"};
  const auto& p = get<ScatterParams>(stage.params);
  if (p.form == ScatterForm::one_hot) return make_one_hot(stage, shop);
  auto kernel = std::make_unique<CudaKernel>(stage);
  SPARKLE_CHECK(add_all(*kernel, shop));
  return kernel;
}

}  // namespace sparkle::cuda
