// The families that have kernels for Vulkan, and who makes them.
#include "backends/vulkan/vulkan_kernel.h"

namespace sparkle::vulkan {

Maker maker_of(Family family) {
  switch (family) {
    case Family::gemm: return make_gemm;
    case Family::depthwise: return make_depthwise;
    case Family::quantize: return make_quantize;
    default: return nullptr;
  }
}

}  // namespace sparkle::vulkan
