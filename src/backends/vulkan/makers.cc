// The families that have kernels for Vulkan, and who makes them.
#include "backends/vulkan/vulkan_kernel.h"

namespace sparkle::vulkan {

Maker maker_of(Family family) {
  switch (family) {
    case Family::gemm: return make_gemm;
    case Family::winograd: return make_winograd;
    default: return nullptr;
  }
}

}  // namespace sparkle::vulkan
