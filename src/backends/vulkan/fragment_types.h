// Shaders with fragments (glsl/fragments.glsl) after their compiler: GLSL names a fragment's element type by a placeholder, as
// it has no way to name a type there; a driver wants the type itself, declared before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sparkle::vulkan {

// The words with every placeholder replaced and the types of 16- and 32-bit floats declared before all others; the same words
// where there are no fragments. Words that are no SPIR-V come back as they are: the driver refuses them.
std::vector<uint32_t> with_fragment_types(std::span<const uint32_t> words);

}  // namespace sparkle::vulkan
