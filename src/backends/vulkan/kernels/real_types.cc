#include "backends/vulkan/kernels/real_types.h"

#include <optional>

#include "backends/vulkan/driver/context.h"

namespace sparkle::vulkan {

Result<bool> in_fp16(const Stage& stage, const Workshop& shop, uint32_t others) {
  std::optional<DType> type;
  uint32_t operand = 0;
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list) {
      if (others >> operand++ & 1) continue;
      const bool supported = d.dtype == DType::f32 || (d.dtype == DType::f16 && shop.context->features().f16);
      if (!supported || d.dtype != type.value_or(d.dtype))
        return Error{Reason::type_not_served, "The " + std::string(name_of(stage.family())) +
                                                  " kernels for Vulkan support f32, and f16 on devices that store it, not " +
                                                  std::string(name_of(d.dtype)) + " here; use --device cpu."};
      type = d.dtype;
    }
  return type == DType::f16;
}

}  // namespace sparkle::vulkan
