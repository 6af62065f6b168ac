// Who makes the kernels of a family: the build lists the files (cmake/cuda.cmake).
#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

KernelFactory factory_of(Family family) {
  switch (family) {
#define KERNEL(name) \
  case Family::name: return make_##name;
#include "cuda_stages.inc"
#undef KERNEL
    default: return nullptr;
  }
}

Result<CudaKernelPtr> make_kernel(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  return factory_of(stage.family())(stage, schedule, shop, constants);
}

}  // namespace sparkle::cuda
