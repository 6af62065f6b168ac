#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {

Result<CpuKernelPtr> make_quantize(const Stage&, const Schedule& schedule, const Device&, uint32_t) {
  return Error{Reason::backend_lacks_variant,
               "The CPU backend has no quantize variant '" + variant_of(schedule) + "'; choose 'plain'."};
}

}  // namespace sparkle::cpu
