// Who makes the kernels of a family: the build lists the files (cmake/vulkan.cmake).
#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

KernelFactory factory_of(Family family) {
  switch (family) {
#define KERNEL(name) \
  case Family::name: return make_##name;
#include "kernels.inc"
#undef KERNEL
    default: return nullptr;
  }
}

Result<VulkanKernelPtr> make_kernel(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  return factory_of(stage.family())(stage, schedule, shop, constants);
}

}  // namespace sparkle::vulkan
