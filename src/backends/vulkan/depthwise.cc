// The depthwise family on Vulkan.
#include "backends/vulkan/integer_sums.h"

namespace sparkle::vulkan {

Result<VulkanKernelPtr> make_depthwise(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* s = std::get_if<DepthwiseSchedule>(&schedule);
  if (s && is_integer(stage.inputs)) return make_integer_depthwise(stage, *s, shop, constants);
  return Error{Reason::backend_lacks_variant, "the depthwise kernels for Vulkan serve stages on 8-bit integers"};
}

}  // namespace sparkle::vulkan
