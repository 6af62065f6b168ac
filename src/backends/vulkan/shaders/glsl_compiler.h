// GLSL to SPIR-V at run time, by glslang. A text is compiled once per process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace sparkle::vulkan {

// A compute shader for Vulkan 1.3. Errors: internal, with what glslang says; the words live as long as the process.
Result<const std::vector<uint32_t>*> compile_glsl(const std::string& text);

}  // namespace sparkle::vulkan
