#include "backends/vulkan/roof_runs.h"

#include <algorithm>

#include "families/copy/copy.h"

namespace sparkle::vulkan {

Result<std::unique_ptr<VulkanKernel>> bare_kernel(const Workshop& shop, const PipelineRequest& request, uint32_t groups,
                                                  int operands, std::initializer_list<int> pushed) {
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  Stage stage;
  stage.params = CopyParams{};
  const TensorDesc bytes = dense_desc(DType::f32, {16});
  stage.inputs.assign(static_cast<size_t>(operands - 1), bytes);
  stage.outputs.push_back(bytes);
  auto kernel = std::make_unique<VulkanKernel>(stage);
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = {groups, 1, 1};
  for (int i = 0; i < operands; ++i) d.addresses.push_back({i});
  for (const int value : pushed) d.push(value);
  kernel->dispatches.push_back(std::move(d));
  return kernel;
}

uint32_t groups_of(const Device& device) {
  return is_software(device) ? 16 : static_cast<uint32_t>(std::max(1, device.cores)) * 16;
}

}  // namespace sparkle::vulkan
