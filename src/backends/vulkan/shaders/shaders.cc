#include "backends/vulkan/shaders/shaders.h"

#include <algorithm>

namespace sparkle::vulkan {
namespace {
#include "shader_words.inc"
constexpr Shader kShaders[] = {
#include "shader_table.inc"
};
}  // namespace

std::span<const Shader> shaders() { return kShaders; }

const Shader* shader_named(std::string_view name) {
  const auto* at = std::find_if(std::begin(kShaders), std::end(kShaders), [&](const Shader& s) { return s.name == name; });
  return at == std::end(kShaders) ? nullptr : at;
}

}  // namespace sparkle::vulkan
