#include "backends/cuda/sources.h"

namespace sparkle::cuda {

Result<std::vector<KernelLaunch>> launches_of(const Stage& stage, const Schedule& schedule, const Device& device,
                                              uint32_t constants) {
  const Workshop shop{Context::described(device), nullptr, Functions::described()};
  SPARKLE_TRY(kernel, make_kernel(stage, schedule, shop, constants));
  return std::move(kernel->launches);
}

}  // namespace sparkle::cuda
