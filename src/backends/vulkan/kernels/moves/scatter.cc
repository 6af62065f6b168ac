// The scatter family on Vulkan: y is copied from the data, then updates follow. With a reduction a thread takes those that may
// meet, one after the other, so that results are the same on every run; without one the last of them is found by claims.
#include "families/scatter/scatter.h"

#include <algorithm>

#include "backends/vulkan/kernels/moves/one_hot.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/copy/copy.h"
#include "families/scatter/scatter_gpu.h"
#include "families/scatter/scatter_updates.h"
#include "families/type_set.h"

namespace sparkle::vulkan {
namespace {

constexpr int64_t kThreads = 128;

// As in glsl/scatter.glsl.
struct ScatterRecord {
  uint32_t parallel = 0, serial = 0;
  int32_t rank = 0, serial_rank = 0, first_update = 0, first_y = 0, first_index = 0;
  int32_t picked = 0, tuple_stride = 0;
  Divisor size[kMaxRank] = {};
  int32_t update[kMaxRank] = {}, y[kMaxRank] = {}, index[kMaxRank] = {}, order[kMaxRank] = {}, slot[kMaxRank] = {};
  int32_t picked_size[kMaxRank] = {}, picked_y[kMaxRank] = {}, picked_slot[kMaxRank] = {};
};

class Builder {
 public:
  Builder(VulkanKernel& kernel, const Workshop& shop)
      : kernel_(kernel), stage_(kernel.stage), shop_(shop), updates_(scatter_updates(stage_)) {}

  Status add() {
    const auto& p = get<ScatterParams>(stage_.params);
    const TensorDesc &indices = stage_.inputs[1], &y = stage_.outputs[0];
    for (const auto* list : {&stage_.inputs, &stage_.outputs})
      for (const TensorDesc& d : *list)
        if (extent(d.shape, d.layout) > INT32_MAX / 2 || d.elements() > INT32_MAX / 2) return too_far("scatter");
    if (indices.elements() > 0)
      kernel_.bounds_error = [stage = stage_](int64_t number, int64_t value) { return update_outside(stage, number, value); };
    if (y.elements() == 0) return indices.elements() > 0 ? last(3, without_slices(updates_, stage_)) : ok();
    SPARKLE_CHECK(copy_data());
    const ScatterShares shares = scatter_shares(stage_);
    if (shares.parallel * shares.serial == 0) return ok();
    if (!shares.claims) return walk(p.reduction);
    kernel_.workspace = 4 * shares.slots;
    ScatterUpdates slots;
    slots.parallel = {{shares.slots}};
    SPARKLE_CHECK(last(0, slots));
    kernel_.dispatches.back().after_previous = false;
    SPARKLE_CHECK(last(1, p.form == ScatterForm::tuples ? without_slices(updates_, stage_) : updates_));
    return last(2, updates_);
  }

 private:
  Status copy_data() {
    const Stage copy{CopyParams{}, {stage_.inputs[0]}, {stage_.outputs[0]}};
    SPARKLE_TRY(made, make_copy(copy, LoopSchedule{"units", "", 0}, shop_, 0));
    for (Dispatch& d : made->dispatches) {
      d.addresses[1].operand = 3;  // y, behind three inputs
      kernel_.dispatches.push_back(std::move(d));
    }
    for (auto& record : made->records) kernel_.records.push_back(std::move(record));
    return ok();
  }
  Status last(uint32_t step, const ScatterUpdates& updates) {
    return dispatch("scatter_last_" + std::to_string(size_of(stage_.outputs[0].dtype)), {step}, updates, false);
  }
  Status walk(ScatterReduction reduction) {
    const DType type = stage_.outputs[0].dtype;
    std::string shader = "scatter_walk_" + std::to_string(size_of(type));
    const bool computes = reduction != ScatterReduction::none;
    if (computes && type == DType::f32) shader = "scatter_walk";
    if (computes && type == DType::f16) shader = "scatter_walk_half";
    if (computes && type == DType::f64) shader = "scatter_walk_doubles";
    return dispatch(shader, {static_cast<uint32_t>(reduction), kSignedIntegers.has(type)}, updates_, true);
  }

  Status dispatch(const std::string& shader, std::vector<uint32_t> constants, const ScatterUpdates& updates, bool by_rows) {
    const TensorDesc& indices = stage_.inputs[1];
    const int64_t element = size_of(stage_.outputs[0].dtype);
    ScatterRecord r;
    r.parallel = r.serial = 1;
    int64_t update = 0, y = 0, index = 0;  // the lowest places
    for (const auto* axes : {&updates.serial, &updates.parallel})
      for (const ScatterUpdates::Axis& a : *axes) {
        (axes == &updates.serial ? r.serial : r.parallel) *= static_cast<uint32_t>(a.size);
        r.size[r.rank] = divisor(a.size);
        r.update[r.rank] = static_cast<int32_t>(a.update);
        r.y[r.rank] = static_cast<int32_t>(a.y);
        r.index[r.rank] = static_cast<int32_t>(a.index);
        r.order[r.rank] = static_cast<int32_t>(a.order);
        r.slot[r.rank++] = static_cast<int32_t>(a.slot);
        update += std::min<int64_t>(0, (a.size - 1) * a.update);
        y += std::min<int64_t>(0, (a.size - 1) * a.y);
        index += std::min<int64_t>(0, (a.size - 1) * a.index);
      }
    r.serial_rank = static_cast<int32_t>(updates.serial.size());
    for (const ScatterUpdates::Picked& p : updates.picked) {
      r.picked_size[r.picked] = static_cast<int32_t>(p.size);
      r.picked_y[r.picked] = static_cast<int32_t>(p.y);
      r.picked_slot[r.picked++] = static_cast<int32_t>(p.slot);
      y += std::min<int64_t>(0, (p.size - 1) * p.y);
    }
    index += std::min<int64_t>(0, (r.picked - 1) * updates.tuple_stride);
    r.tuple_stride = static_cast<int32_t>(updates.tuple_stride);
    r.first_update = static_cast<int32_t>(-update), r.first_y = static_cast<int32_t>(-y);
    r.first_index = static_cast<int32_t>(-index);
    PipelineRequest request;
    request.shader = shader;
    request.constants = {kThreads, 1, 1, indices.dtype == DType::i64};
    request.constants.insert(request.constants.end(), constants.begin(), constants.end());
    SPARKLE_TRY(pipeline, shop_.pipelines->get(request));
    SPARKLE_TRY(record, shop_.upload(&r, sizeof r));
    Dispatch d;
    d.pipeline = pipeline;
    d.groups = groups_of_threads(by_rows ? r.parallel : int64_t{r.parallel} * r.serial, kThreads);
    d.addresses = {{1, index * size_of(indices.dtype)},
                   {2, update * element},
                   {3, y * element},
                   {kernel_.workspace > 0 ? kWorkspace : 3},
                   {kBoundsReports}};
    d.push(record->address());
    kernel_.dispatches.push_back(std::move(d));
    kernel_.records.push_back(std::move(record));
    return ok();
  }

  VulkanKernel& kernel_;
  const Stage& stage_;
  const Workshop& shop_;
  const ScatterUpdates updates_;
};

Status supports(const Stage& stage, const Workshop& shop) {
  const auto& p = get<ScatterParams>(stage.params);
  const DType type = stage.outputs[0].dtype;
  const Features& f = shop.context->features();
  const int64_t bytes = size_of(type);
  const bool computed = kIntegers.has(type) || type == DType::f32 || type == DType::f16 || (type == DType::f64 && f.f64) ||
                        (type == DType::boolean && p.reduction >= ScatterReduction::max);
  if ((p.reduction == ScatterReduction::none || computed) && (bytes != 1 || f.i8) && (bytes != 2 || f.f16)) return ok();
  return Error{Reason::type_not_served, "the Vulkan scatter kernels do not support '" + std::string(name_of(p.reduction)) +
                                            "' of " + std::string(name_of(type)) + " on this device; use --device cpu"};
}

}  // namespace

Result<VulkanKernelPtr> make_scatter(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "updates")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no scatter variant '" + variant_of(schedule) + "'"};
  SPARKLE_CHECK(supports(stage, shop));
  if (get<ScatterParams>(stage.params).form == ScatterForm::one_hot) return make_one_hot(stage, shop);
  auto kernel = std::make_unique<VulkanKernel>(stage);
  SPARKLE_CHECK(Builder(*kernel, shop).add());
  return kernel;
}

}  // namespace sparkle::vulkan
