// The reduce family on Vulkan: rows.h says how rows are taken, glsl/reduce.comp what is made of them.
#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/rows/rows.h"
#include "families/reduce/gpu_types.h"
#include "families/type_set.h"

namespace sparkle::vulkan {
namespace {

// Doubles, integers and truth values: one dispatch, no row cut.
Result<VulkanKernelPtr> make_typed(const Stage& stage, const Workshop& shop) {
  const DType type = stage.inputs[0].dtype;
  const auto& p = get<ReduceParams>(stage.params);
  const Features& f = shop.context->features();
  const int64_t bytes = size_of(type);
  if (type != stage.outputs[0].dtype || !reduces_on_gpus(p.kind, type) || (type == DType::f64 && !f.f64) ||
      (bytes == 1 && !f.i8) || (bytes == 2 && !f.f16))
    return Error{Reason::type_not_served, "the Vulkan reduce kernels do not support '" + std::string(name_of(p.kind)) +
                                              "' of " + std::string(name_of(type)) + " on this device; use --device cpu"};
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  uint32_t within = 0;
  for (const int64_t axis : p.axes) within |= 1u << axis;
  SPARKLE_TRY(record, rows_of({&stage.inputs[0], nullptr, nullptr, &stage.outputs[0]}, within, false));
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  const uint32_t constants[] = {0, static_cast<uint32_t>(p.kind), kSignedIntegers.has(type), type == DType::boolean};
  const std::string shader = type == DType::f64 ? "reduce_doubles" : "reduce_integers_" + std::to_string(bytes);
  SPARKLE_TRY(dispatch, rows_dispatch(shop, shader, {constants, type == DType::f64 ? 2u : 4u}, {0, -2, -2, 1}, record,
                                      buffer->address()));
  kernel->dispatches.push_back(std::move(dispatch));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace

Result<VulkanKernelPtr> make_reduce(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the Vulkan reduce kernels have no variant '" + variant_of(schedule) + "'"};
  if (const DType type = stage.inputs[0].dtype; type != DType::f32 && type != DType::f16) return make_typed(stage, shop);
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  const auto& p = get<ReduceParams>(stage.params);
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  uint32_t within = 0;
  for (const int64_t axis : p.axes) within |= 1u << axis;
  SPARKLE_TRY(record, rows_of({&stage.inputs[0], nullptr, nullptr, &stage.outputs[0]}, within, true));
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  const auto add = [&](uint32_t step) -> Status {
    const uint32_t constants[] = {step, static_cast<uint32_t>(p.kind)};
    SPARKLE_TRY(dispatch,
                rows_dispatch(shop, shader_for("reduce", fp16), constants, {0, -2, -2, 1}, record, buffer->address()));
    if (step == 2) dispatch.groups[2] = 1;
    kernel->dispatches.push_back(std::move(dispatch));
    return ok();
  };
  SPARKLE_CHECK(add_steps(*kernel, record, add));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
