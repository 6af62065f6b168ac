// The kernels' machine-independent code, made from glsl/*.comp at build time (cmake/vulkan.cmake).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sparkle::vulkan {

struct Shader {
  std::string_view name;  // of a "// build:" line in a .comp file
  std::span<const uint32_t> words;
};
std::span<const Shader> shaders();
// nullptr: there is none of this name.
const Shader* shader_named(std::string_view name);

}  // namespace sparkle::vulkan
