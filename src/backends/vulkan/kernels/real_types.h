// Types in which kernels store real numbers: f32 everywhere, f16 in shaders built with -DHALF (glsl/buffers.glsl).
#pragma once

#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

// Whether the stage's tensors are f16; false: all are f32. Bit i of `others`: operand i, inputs before outputs, has a type of
// its own. Errors: type_not_served for other types, for a mix, and for f16 where the device does not store it.
Result<bool> in_fp16(const Stage& stage, const Workshop& shop, uint32_t others = 0);

// The name of the shader for tensors so stored.
inline std::string shader_for(std::string_view name, bool fp16) { return std::string(name) + (fp16 ? "_half" : ""); }

}  // namespace sparkle::vulkan
