// Functions in GLSL for programs that are printed at run time: glsl/pointwise_*.glsl, as text in the binary.
#pragma once

#include <string>
#include <string_view>

namespace sparkle::vulkan {

// The parts that `text` calls and what these call, in an order in which each comes before its use.
std::string library_parts(std::string_view text);

}  // namespace sparkle::vulkan
