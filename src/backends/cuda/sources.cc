#include "backends/cuda/sources.h"

#include "backends/cuda/images.h"
#include "backends/cuda/stages/record_text.h"

namespace sparkle::cuda {

Result<std::vector<KernelLaunch>> launches_of(const Stage& stage, const Schedule& schedule, const Device& device,
                                              uint32_t constants) {
  const Workshop shop{Context::described(device), nullptr, Functions::described()};
  SPARKLE_TRY(kernel, make_kernel(stage, schedule, shop, constants));
  return std::move(kernel->launches);
}

std::string words_of(const KernelLaunch& launch) {
  std::string text;
  for (const CodeImage& image : code_images())
    if (("\n" + std::string(image.kernels)).find("\n" + launch.kernel + "\n") != std::string::npos)
      text = "    code of " + std::string(image.name) + ".cu; of a build's: cuobjdump -sass -fun " + launch.kernel +
             " build/release/cuda/" + std::string(image.name) + ".fatbin\n";
  return text + record_text(launch);
}

}  // namespace sparkle::cuda
