// The families that have kernels for Vulkan, and who makes them.
#include "backends/vulkan/vulkan_kernel.h"

namespace sparkle::vulkan {

Maker maker_of(Family family) {
  switch (family) {
    case Family::gemm: return make_gemm;
    default: return nullptr;
  }
}

}  // namespace sparkle::vulkan
