// Who makes the kernels of a family: the build lists the files (cmake/vulkan.cmake).
#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

Maker maker_of(Family family) {
  switch (family) {
#define KERNEL(name) \
  case Family::name: return make_##name;
#include "kernels.inc"
#undef KERNEL
    default: return nullptr;
  }
}

}  // namespace sparkle::vulkan
