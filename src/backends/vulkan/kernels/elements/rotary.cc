// The rotary family on Vulkan: rows.h says how rows are taken, glsl/rotary.comp turns their pairs.
#include "families/rotary/rotary.h"

#include "backends/vulkan/kernels/real_types.h"
#include "backends/vulkan/kernels/rows/rows.h"

namespace sparkle::vulkan {

Result<VulkanKernelPtr> make_rotary(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the Vulkan rotary kernels have no variant '" + variant_of(schedule) + "'"};
  SPARKLE_TRY(fp16, in_fp16(stage, shop));
  const TensorDesc &x = stage.inputs[0], &cosine = stage.inputs[1], &sine = stage.inputs[2], &y = stage.outputs[0];
  auto kernel = std::make_unique<VulkanKernel>(stage);
  if (y.elements() == 0) return kernel;
  SPARKLE_TRY(record, rows_of({&x, &cosine, &sine, &y}, 1u << (x.shape.size() - 1), false));
  record.own[0] = static_cast<uint32_t>(cosine.shape.back());
  SPARKLE_TRY(buffer, shop.upload(&record, sizeof record));
  const uint32_t constants[] = {0, get<RotaryParams>(stage.params).interleaved};
  SPARKLE_TRY(dispatch, rows_dispatch(shop, shader_for("rotary", fp16), constants, {0, 1, 2, 3}, record, buffer->address()));
  kernel->dispatches.push_back(std::move(dispatch));
  kernel->records.push_back(std::move(buffer));
  return kernel;
}

}  // namespace sparkle::vulkan
