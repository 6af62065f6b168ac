// The softmax family on Vulkan: rows.h says how rows are taken, glsl/softmax.comp what is made of them.
#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/rows/rows.h"
#include "families/softmax/softmax.h"

namespace sparkle::vulkan {

Result<VulkanKernelPtr> make_softmax(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const bool parts = variant_of(schedule) == "parts_gpu";
  if (!parts && variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the Vulkan softmax kernels have no variant '" + variant_of(schedule) + "'"};
  const bool doubles =
      stage.inputs[0].dtype == DType::f64 && stage.outputs[0].dtype == DType::f64 && !parts && shop.context->features().f64;
  SPARKLE_TRY(fp16, doubles ? Result<bool>(false) : in_fp16(stage, shop));
  const auto& p = get<SoftmaxParams>(stage.params);
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  uint32_t within = 0;
  for (int axis = p.first_axis; axis <= p.last_axis; ++axis) within |= 1u << axis;
  SPARKLE_TRY(record, rows_of({&stage.inputs[0], nullptr, nullptr, &stage.outputs[0]}, within, parts));
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  const auto add = [&](uint32_t step) -> Status {
    const uint32_t constants[] = {step, p.logarithm};
    const std::string shader = doubles ? "softmax_doubles" : shader_for("softmax", fp16);
    SPARKLE_TRY(dispatch, rows_dispatch(shop, shader, constants, {0, -2, -2, 1}, record, buffer->address()));
    kernel->dispatches.push_back(std::move(dispatch));
    return ok();
  };
  SPARKLE_CHECK(add_steps(*kernel, record, add));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
