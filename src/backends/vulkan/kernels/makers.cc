// The families that have kernels for Vulkan, and who makes them.
#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

Maker maker_of(Family family) {
  switch (family) {
    case Family::gemm: return make_gemm;
    case Family::depthwise: return make_depthwise;
    case Family::pool: return make_pool;
    case Family::copy: return make_copy;
    case Family::pad: return make_pad;
    case Family::resize: return make_resize;
    case Family::gather: return make_gather;
    case Family::quantize: return make_quantize;
    case Family::winograd: return make_winograd;
    case Family::pointwise: return make_pointwise;
    case Family::reduce: return make_reduce;
    case Family::softmax: return make_softmax;
    case Family::normalize: return make_normalize;
    case Family::attention: return make_attention;
    case Family::fft: return make_fft;
    case Family::triangle: return make_triangle;
    case Family::rotary: return make_rotary;
    case Family::scan: return make_scan;
    case Family::top_k: return make_top_k;
    case Family::scatter: return make_scatter;
    case Family::non_max: return make_non_max;
    case Family::sample: return make_sample;
    case Family::deform: return make_deform;
    default: return nullptr;
  }
}

}  // namespace sparkle::vulkan
