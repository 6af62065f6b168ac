#include "backends/vulkan/kernels/moves/chunks.h"

#include <algorithm>

namespace sparkle::vulkan {

ChunkAxes chunk_axes(const std::vector<ChunkAxis>& axes) {
  ChunkAxes u{};
  for (size_t i = 0; i < axes.size(); ++i) {
    u.size[i] = divisor(axes[i].size);
    u.x[i] = static_cast<int32_t>(axes[i].x);
    u.y[i] = static_cast<int32_t>(axes[i].y);
  }
  return u;
}

Result<const Pipeline*> chunk_pipeline(const Workshop& shop, const std::string& name, int64_t bytes, int threads,
                                       std::vector<uint32_t> constants) {
  const Features& f = shop.context->features();
  if ((bytes == 1 && !f.i8) || (bytes == 2 && !f.f16))
    return Error{Reason::type_not_served, "The Vulkan device '" + shop.context->physical().name +
                                              "' cannot store single elements of " + std::to_string(8 * bytes) +
                                              " bits; use --device cpu."};
  const std::string shader = name + "_" + std::to_string(bytes);
  PipelineRequest request;
  request.shader = shader;
  request.constants = {static_cast<uint32_t>(threads), 1, 1};
  request.constants.insert(request.constants.end(), constants.begin(), constants.end());
  return shop.pipelines->get(request);
}

std::array<uint32_t, 3> groups_for_chunks(int64_t chunks) {
  return flat_groups((chunks + kChunkThreads * kChunkSteps - 1) / (kChunkThreads * kChunkSteps));
}

int64_t before_first(const TensorDesc& desc) {
  int64_t lowest = 0;
  for (int i = 0; i < desc.shape.size(); ++i) lowest += std::min<int64_t>(0, (desc.shape[i] - 1) * desc.layout.strides[i]);
  return -lowest;
}

Error too_far(std::string_view what) {
  return {Reason::layout_not_served,
          "The Vulkan " + std::string(what) + " kernels count in 31 bits, and an operand spans more; split the batch."};
}

}  // namespace sparkle::vulkan
