// Texts of shaders as one file: what they include in its place, the macros of their build line in front.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sparkle::vulkan {

// The text of a shader with `post_op` in the place of glsl/post_op.glsl. Errors: internal where there is none of that name.
Result<std::string> shader_text(std::string_view shader, std::string_view post_op);

}  // namespace sparkle::vulkan
