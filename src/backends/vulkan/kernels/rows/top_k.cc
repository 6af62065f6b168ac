// The top_k family on Vulkan. The best of a row is found as reductions are (rows.h). More than one: pieces of a row are sorted
// in shared memory, then pairs of them merged, of which no more is kept than can come out, until one is left.
#include <algorithm>

#include "backends/vulkan/kernels/rows/rows.h"
#include "families/top_k/top_k.h"
#include "families/top_k/top_k_gpu.h"
#include "families/type_set.h"

namespace sparkle::vulkan {
namespace {

// As kKind in glsl/top_k.glsl.
uint32_t kind_of(DType type) { return is_float(type) ? 2 : kSignedIntegers.has(type) ? 1 : 0; }

Status supports(const Stage& stage, const Workshop& shop) {
  const DType type = stage.inputs[0].dtype;
  const Features& f = shop.context->features();
  const int64_t bytes = size_of(type);
  const bool number = kIntegers.has(type) || type == DType::f16 || type == DType::f32 || type == DType::f64;
  if (number && (bytes != 1 || f.i8) && (bytes != 2 || f.f16)) return ok();
  return Error{Reason::type_not_served,
               "the Vulkan top_k kernels do not support " + std::string(name_of(type)) + " on this device; use --device cpu"};
}

// Appends a dispatch of the shader NAME_bytes over the record's rows; its groups may still be set.
Status add(VulkanKernel& kernel, const Workshop& shop, const std::string& name, uint32_t step, const RowsRecord& record) {
  const auto& p = get<TopKParams>(kernel.stage.params);
  const DType type = kernel.stage.inputs[0].dtype;
  const bool values = kernel.stage.outputs.size() > 1;
  const uint32_t constants[] = {step, kind_of(type), p.largest, p.last_of_equals, p.nan_first, values};
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  SPARKLE_TRY(dispatch, rows_dispatch(shop, name + "_" + std::to_string(size_of(type)), constants,
                                      {0, values ? 1 : -2, -2, values ? 2 : 1}, record, buffer->address()));
  kernel.dispatches.push_back(std::move(dispatch));
  kernel.records.push_back(std::move(buffer));
  return ok();
}

Status add_sort(VulkanKernel& kernel, const Workshop& shop, RowsRecord record) {
  const int64_t k = get<TopKParams>(kernel.stage.params).k;
  const TopKRuns first = top_k_runs(kernel.stage);
  if (2 * first.entries > INT32_MAX)
    return Error{Reason::layout_not_served,
                 "the Vulkan top_k kernels count in 31 bits, and there is more to sort; split the batch"};
  kernel.workspace = first.bytes;
  record.parts = first.bytes > 0 ? 2 : 1;  // more than one have a workspace
  int64_t width = first.width, runs = first.runs, from = 0, to = 0;
  const auto set = [&] {  // as in glsl/top_k_runs.glsl
    int i = 0;
    for (const int64_t number : {k, width, runs, std::min(k, width), from, to}) record.own[i++] = static_cast<uint32_t>(number);
  };
  set();
  SPARKLE_CHECK(add(kernel, shop, "top_k_sort", 0, record));
  kernel.dispatches.back().groups = flat_groups((first.rows * runs * width + kTopKEntries - 1) / kTopKEntries);
  for (to = first.entries; runs > 1; std::swap(from, to)) {
    const int64_t entries = first.rows * runs * std::min(k, width);
    width *= 2, runs = (runs + 1) / 2;
    set();
    SPARKLE_CHECK(add(kernel, shop, "top_k_merge", 0, record));
    kernel.dispatches.back().groups = groups_of_threads(entries, kRowThreads);
  }
  return ok();
}

}  // namespace

Result<VulkanKernelPtr> make_top_k(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const auto& p = get<TopKParams>(stage.params);
  const bool best = variant_of(schedule) == "best";
  if (!best && variant_of(schedule) != "sort")
    return Error{Reason::backend_lacks_variant, "the Vulkan backend has no top_k variant '" + variant_of(schedule) + "'"};
  if (best && p.k > 1) return Error{Reason::filter_not_served, "the variant 'best' finds one element of each row"};
  SPARKLE_CHECK(supports(stage, shop));
  auto kernel = std::make_unique<VulkanKernel>(stage);
  const TensorDesc *values = stage.outputs.size() > 1 ? &stage.outputs[0] : nullptr, &indices = stage.outputs.back();
  if (indices.elements() == 0) return kernel;
  SPARKLE_TRY(record, rows_of({&stage.inputs[0], values, nullptr, &indices}, 1u << p.axis, best));
  if (extent(indices.shape, indices.layout) > INT32_MAX / 2)
    return Error{Reason::layout_not_served,
                 "the Vulkan top_k kernels count words in 31 bits, and the indices span more; split the batch"};
  if (!best) {
    SPARKLE_CHECK(add_sort(*kernel, shop, record));
    return kernel;
  }
  SPARKLE_CHECK(add_steps(*kernel, record, [&](uint32_t step) -> Status {
    SPARKLE_CHECK(add(*kernel, shop, "top_k_best", step, record));
    if (step == 2) kernel->dispatches.back().groups[2] = 1;
    return ok();
  }));
  return kernel;
}

}  // namespace sparkle::vulkan
