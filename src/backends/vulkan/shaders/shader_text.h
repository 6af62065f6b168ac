// Texts of shaders as one file: what they include in its place, the macros of their build line in front.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sparkle::vulkan {

// The text of a shader with `tail` in the place of glsl/tail.glsl. Errors: internal where there is none of that name.
Result<std::string> shader_text(std::string_view shader, std::string_view tail);

}  // namespace sparkle::vulkan
